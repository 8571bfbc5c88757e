#!/usr/bin/env python3
"""Makes what a release consists of, from a built program: `./dev package` calls this.

package.py [--build FOLDER] [--out FOLDER]

  inferd-VERSION-linux-x86_64.tar.gz   for any Linux with glibc: unpack below /usr/local or ~/.local
  inferd_VERSION_amd64.deb             for Debian and its kin
  SHA256SUMS                           of both

The same program and commit give the same bytes: files are sorted and belong to root, and their time is that of the
commit (or SOURCE_DATE_EPOCH, https://reproducible-builds.org/specs/source-date-epoch/).
"""
import argparse
import gzip
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from components import PackagingError, bill_of_materials, output
from contents import BUILD, COMPLETIONS, DOCUMENTS, LICENCE, MANUAL, PROGRAM, ROOT, Entry, about, compiler_of, contents

OLDEST_GLIBC = (2, 36)  # what the README promises, whatever this build would do with
BILL = f"{DOCUMENTS}/inferd.spdx.json"
SERVICE = "lib/systemd/system/inferd.service"
# Where Debian's shells and systemd look; the rest is the same below usr/.
DEBIAN_PLACES = {COMPLETIONS["zsh"]: "share/zsh/vendor-completions/_inferd"}

DESCRIPTION = """serve, measure and explore language models on the CPU
 One program that serves a language model from a file on this machine, over an
 OpenAI-compatible HTTP interface and in the terminal, many requests at once.
 .
 The service is installed, but neither enabled nor started."""

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: inferd
Comment: Parts of other works are linked into the program. THIRD-PARTY-NOTICES.txt beside this file names them with
 their licences, inferd.spdx.json with their versions.

Files: *
Copyright: 2026 The inferd authors
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
"""

# systemd learns that the unit has come; nothing is enabled or started.
POSTINST = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
"""
# Before the program goes, the service that runs it ends.
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now inferd.service
fi
"""


def commit_time():
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        if not given.isdigit():
            raise PackagingError(f"error: SOURCE_DATE_EPOCH is {given!r}, and should be seconds since 1970")
        return int(given)
    done = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True)
    if done.returncode != 0:
        raise PackagingError("error: the time of the commit is not known, since this tree is no git repository\n"
                             "fix: give it in seconds since 1970 as SOURCE_DATE_EPOCH")
    return int(done.stdout)


def needed_glibc(program):
    """The newest version of a glibc symbol that the program asks for."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "--version-info", "--wide", str(program)))
    return max((int(major), int(minor)) for major, minor in found)


def service(folder):
    text = (ROOT / "packaging" / "inferd.service.in").read_text(encoding="utf-8")
    return Entry(text.replace("@BINDIR@", folder).encode())


def sums(files):
    return "".join(f"{hashlib.sha256(files[name].content).hexdigest()}  {name}\n" for name in sorted(files))


def tar_gz(files, top, epoch):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
        for name in sorted({"", *folders, *files}):
            member = tarfile.TarInfo(f"{top}/{name}".rstrip("/"))
            member.mtime = epoch
            if name in files:
                member.mode, member.size = files[name].mode, len(files[name].content)
                archive.addfile(member, io.BytesIO(files[name].content))
            else:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
    return gzip.compress(plain.getvalue(), compresslevel=6, mtime=0)


def debian_files(files):
    """The same files where Debian has them."""
    placed = {}
    for name, entry in files.items():
        if name == LICENCE:  # every Debian has it
            continue
        if name == MANUAL:
            name, entry = f"{name}.gz", Entry(gzip.compress(entry.content, mtime=0))
        placed["usr/" + DEBIAN_PLACES.get(name, name)] = entry
    placed[f"usr/{SERVICE}"] = service("/usr/bin")
    placed[f"usr/{DOCUMENTS}/copyright"] = Entry(COPYRIGHT.encode())
    return placed


def control(version, architecture, glibc, files):
    kib = sum(-(-len(entry.content) // 1024) for entry in files.values())
    return (f"Package: inferd\nVersion: {version}\nArchitecture: {architecture}\nSection: misc\nPriority: optional\n"
            f"Maintainer: The inferd authors <authors@inferd.invalid>\nInstalled-Size: {kib}\n"
            f"Depends: libc6 (>= {glibc[0]}.{glibc[1]})\n"
            # Roots for downloads; pip fetches models that come in Python packages.
            f"Recommends: ca-certificates\nSuggests: python3-pip\nDescription: {DESCRIPTION}\n")


def write_deb(path, files, version, architecture, glibc, epoch):
    scripts = {
        "control": Entry(control(version, architecture, glibc, files).encode()),
        "md5sums": Entry("".join(f"{hashlib.md5(files[name].content).hexdigest()}  {name}\n"
                                 for name in sorted(files)).encode()),
        "postinst": Entry(POSTINST.encode(), 0o755),
        "prerm": Entry(PRERM.encode(), 0o755),
    }
    # xz by one thread: its bytes depend on how many there are. Level 1: a fifth of the time of 6, a tenth more bytes.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".deb-") as folder:
        root = Path(folder) / "root"
        for name, entry in {**files, **{f"DEBIAN/{name}": entry for name, entry in scripts.items()}}.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(entry.content)
            file.chmod(entry.mode)
        for file in [root, *root.rglob("*")]:
            if file.is_dir():
                file.chmod(0o755)
            os.utime(file, (epoch, epoch))
        # env: it also puts the time of the archive's own members into the file.
        output("env", f"SOURCE_DATE_EPOCH={epoch}", "dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--threads-max=1",
               "--build", str(root), str(path))


def make(build, out):
    """The paths of what was made, all of them or none."""
    program = build / "inferd"
    epoch = commit_time()
    files = contents(build)
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "inferd"
        output("strip", "--strip-all", "-o", str(stripped), str(program))
        files[PROGRAM] = Entry(stripped.read_bytes(), 0o755)
    described = about(program)
    version = described["version"]
    if described["commit"].endswith("+"):
        print(f"warning: the program has changes that are not committed; it calls itself {version} "
              f"({described['commit']})", file=sys.stderr)
    digest = hashlib.sha256(files[PROGRAM].content).hexdigest()
    files[BILL] = Entry(bill_of_materials(described, digest, compiler_of(build), epoch).encode())
    glibc = max(OLDEST_GLIBC, needed_glibc(program))
    architecture = output("dpkg", "--print-architecture").strip()

    unpacked = {**files, SERVICE: service("/usr/local/bin")}
    unpacked["SHA256SUMS"] = Entry(sums(unpacked).encode())
    top = f"inferd-{version}-linux-{platform.machine()}"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".package-") as folder:
        made = [Path(folder) / f"{top}.tar.gz", Path(folder) / f"inferd_{version}_{architecture}.deb"]
        made[0].write_bytes(tar_gz(unpacked, top, epoch))
        write_deb(made[1], debian_files(files), version, architecture, glibc, epoch)
        listed = {path.name: Entry(path.read_bytes()) for path in made}
        made.append(Path(folder) / "SHA256SUMS")
        made[2].write_text(sums(listed))
        for path in made:
            path.chmod(0o644)
            path.replace(out / path.name)
    return [out / path.name for path in made]


def main():
    parser = argparse.ArgumentParser(usage="package.py [--build FOLDER] [--out FOLDER]")
    parser.add_argument("--build", type=Path, default=BUILD, help="the build folder; build/release")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "package", help="where to; build/package")
    given = parser.parse_args()
    try:
        for path in make(given.build, given.out):
            print(path)
        return 0
    except PackagingError as error:
        print(error, file=sys.stderr)
        return 65
    except OSError as error:
        print(f"error: {error.strerror}\n  {error.filename}\nfix: give another folder with --out, or make room there",
              file=sys.stderr)
        return 73


if __name__ == "__main__":
    sys.exit(main())
