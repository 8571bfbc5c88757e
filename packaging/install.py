#!/usr/bin/env python3
"""Puts inferd below a prefix, or removes it from there: `./dev install` and `./dev uninstall` call this.

install.py [PREFIX]           from build/release; PREFIX is ~/.local unless given
install.py --check [PREFIX]   only whether that would be possible
install.py --remove [PREFIX]  takes away what an installation put there, and nothing else

Every file is written under another name beside its own, and all are renamed only when the last has been written: what
fails before leaves the prefix as it was. Prints each file's path on stdout.
"""
import argparse
import contextlib
import errno
import fcntl
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from components import PackagingError
from contents import BUILD, DOCUMENTS, NAMES, PROGRAM, contents

EXIT_USAGE, EXIT_FILE, EXIT_DISK, EXIT_PERMISSION, EXIT_INTERRUPTED = 2, 65, 73, 77, 130


def default_prefix():
    home = os.environ.get("HOME")
    if not home:
        raise PackagingError("error: no PREFIX was given, and HOME is not set\nfix: give a PREFIX, such as /usr/local")
    return Path(home) / ".local"


def beside(path):
    return path.with_name(f".{path.name}.installing")


def first_existing(path):
    while not os.path.lexists(path):
        path = path.parent
    return path


def check(prefix):
    """Refuses what could not be written, before anything is."""
    for name in NAMES:
        path = prefix / name
        folder = first_existing(path.parent)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        try:
            tempfile.TemporaryFile(dir=folder).close()  # the mode says nothing to root, nor of a read-only disk
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from error
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


@contextlib.contextmanager
def alone(prefix):
    """Two at once would rename each other's files."""
    descriptor = os.open(prefix, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_folder(folder, made):
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        made.append(path)
        path.chmod(0o755)  # whatever the umask says: others may run the program


def write(path, entry):
    with open(path, "wb") as file:
        file.write(entry.content)
        os.fchmod(file.fileno(), entry.mode)
        file.flush()
        os.fsync(file.fileno())


def install(files, prefix):
    """Path -> "written" or "as it was"."""
    made = []
    written = []
    done = {}
    try:
        make_folder(prefix, made)
        with alone(prefix):
            for name, entry in files.items():
                path = prefix / name
                if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 == entry.mode \
                        and path.read_bytes() == entry.content:
                    done[path] = "as it was"
                    continue
                make_folder(path.parent, made)
                written.append(path)
                write(beside(path), entry)
            # From here on it is done to the end.
            with signals_held():
                for path in written:
                    os.replace(beside(path), path)
                    done[path] = "written"
                written.clear()
                made.clear()
    finally:
        for path in written:
            beside(path).unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # somebody else has put something in
                folder.rmdir()
    return done


@contextlib.contextmanager
def signals_held():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def remove(prefix):
    removed = []
    for path in [prefix / name for name in NAMES]:
        if path.is_file() or path.is_symlink():
            path.unlink()
            removed.append(path)
    with contextlib.suppress(OSError):  # it was not there, or holds a file of somebody else's
        (prefix / DOCUMENTS).rmdir()
    return removed


def path_advice(prefix):
    """Whether a shell will find the program, and if not, what to do."""
    folder = (prefix / PROGRAM).parent
    on_path = any(Path(entry).is_absolute() and Path(entry).resolve() == folder.resolve()
                  for entry in os.environ.get("PATH", "").split(os.pathsep) if entry)
    if not on_path:
        return f'{folder} is not on PATH. Put this into ~/.profile and log in anew:\n  export PATH="{folder}:$PATH"'
    first = shutil.which("inferd")
    if first and Path(first).resolve() != (prefix / PROGRAM).resolve():
        return f"{folder} is on PATH, but `inferd` means {first}, which comes first there."
    return f"{folder} is on PATH."


def explain(error, prefix, verb):
    """The exit code, after saying what to do about a file that cannot be written."""
    where = error.filename or prefix
    print(f"error: cannot {verb} {prefix}: {error.strerror}\n  {where}", file=sys.stderr)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        script = Path(__file__).resolve()
        again = "" if verb == "install to" else "--remove "
        print(f"fix: give a PREFIX that you may write, such as ~/.local, or run\n  sudo {script} {again}{prefix}",
              file=sys.stderr)
        return EXIT_PERMISSION
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        print("fix: make room there, or give another PREFIX", file=sys.stderr)
    else:
        print("fix: give another PREFIX, or move away what is in the way", file=sys.stderr)
    return EXIT_DISK


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(usage="install.py [--check | --remove] [PREFIX]")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="only say whether PREFIX can be installed to")
    what.add_argument("--remove", action="store_true", help="remove an installation")
    parser.add_argument("--build", type=Path, default=BUILD, help="the build folder; build/release")
    parser.add_argument("prefix", nargs="?", metavar="PREFIX", help="~/.local")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGHUP, interrupted)
    verb = "remove from" if given.remove else "install to"
    prefix = None
    try:
        prefix = Path(os.path.abspath(given.prefix)) if given.prefix else default_prefix()
        if given.remove:
            removed = remove(prefix)
            for path in removed:
                print(f"{path}  removed")
            if not removed:
                print(f"There was no inferd below {prefix}.", file=sys.stderr)
            else:
                print("Models and configuration are untouched.", file=sys.stderr)
            return 0
        check(prefix)
        if given.check:
            return 0
        for path, how in install(contents(given.build), prefix).items():
            print(f"{path}  {how}")
        print(path_advice(prefix), file=sys.stderr)
        return 0
    except PackagingError as error:
        print(error, file=sys.stderr)
        return EXIT_FILE if prefix else EXIT_USAGE
    except OSError as error:
        return explain(error, prefix, verb)
    except KeyboardInterrupt:
        print("interrupted; no file is half written", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
