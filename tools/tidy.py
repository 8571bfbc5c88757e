#!/usr/bin/env python3
"""Runs clang-tidy-19 with the compile commands of the dev build.

tidy.py --all      every file of ours in the dev build
tidy.py --changed  the files that differ from main, or else from the commit before, or that are not committed yet; a
                   changed header counts as the .cpp beside it

--budget SECONDS   after that time no further file is begun; how many were left is said

A file that came out clean is not looked at again until it, a header of ours that it includes, its compile command or
.clang-tidy changes: build/tidy holds a stamp for each. Exits 1 when something was reported.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "dev"
STAMPS = ROOT / "build" / "tidy"
OURS = re.compile(r"^(src|apps|tools|tests|bench)/")
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def compile_commands():
    """Path relative to the root -> the command that compiles it."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = os.path.relpath(Path(entry["directory"], entry["file"]).resolve(), ROOT)
        if OURS.match(path):
            commands.setdefault(path, entry["command"])
    return commands


def changed_files():
    head = git("rev-parse", "HEAD")
    base = ""
    for main in ("origin/main", "main"):
        fork = git("merge-base", "HEAD", main)
        if fork and fork != head:
            base = fork
            break
    base = base or git("rev-parse", "--verify", "-q", "HEAD~1")
    names = git("diff", "--name-only", "--diff-filter=d", base).splitlines() if base else git("ls-files").splitlines()
    return set(names) | set(git("ls-files", "--others", "--exclude-standard").splitlines())


def with_our_headers(path, seen):
    """The path and the headers of ours that it includes, directly or not."""
    if path in seen:
        return seen
    seen.add(path)
    for name in INCLUDE.findall((ROOT / path).read_text(errors="replace")):
        for candidate in (Path("src", name), Path(path).parent / name, Path(name)):
            if (ROOT / candidate).is_file():
                with_our_headers(os.path.normpath(candidate), seen)
                break
    return seen


def key(path, command):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + command.encode())
    for name in sorted(with_our_headers(path, set())):
        digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()


def tidy(path, command):
    """What clang-tidy reports for the file, or nothing."""
    stamp = STAMPS / (path.replace("/", "__") + ".clean")
    wanted = key(path, command)
    if stamp.is_file() and stamp.read_text() == wanted:
        return ""
    done = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(BUILD), str(ROOT / path)], capture_output=True, text=True)
    if done.returncode == 0:
        stamp.write_text(wanted)
        return ""
    return done.stdout + "\n".join(line for line in done.stderr.splitlines() if "warnings generated" not in line
                                   and "Suppressed" not in line and "Use -header-filter" not in line)


def main():
    parser = argparse.ArgumentParser()
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true")
    which.add_argument("--changed", action="store_true")
    parser.add_argument("--budget", type=float, default=float("inf"))
    options = parser.parse_args()
    os.chdir(ROOT)
    STAMPS.mkdir(parents=True, exist_ok=True)
    commands = compile_commands()
    wanted = set(commands)
    if options.changed:
        changed = changed_files()
        wanted &= changed | {str(Path(name).with_suffix(".cpp")) for name in changed if name.endswith(".h")}
    deadline = time.monotonic() + options.budget
    bad = left = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(tidy_before, deadline, path, commands[path]): path for path in sorted(wanted)}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            if job.result() is None:
                left += 1
                continue
            print(f"[{done}/{len(jobs)}] {jobs[job]}", flush=True)
            if job.result():
                bad += 1
                print(job.result(), flush=True)
    print(f"clang-tidy: {len(jobs)} files, {bad} with reports, {left} left when the time was up")
    return 1 if bad else 0


def tidy_before(deadline, path, command):
    return tidy(path, command) if time.monotonic() < deadline else None


if __name__ == "__main__":
    sys.exit(main())
