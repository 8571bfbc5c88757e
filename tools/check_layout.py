#!/usr/bin/env python3
"""Holds the tree to its rules of structure: which folder may include which, where the environment may be read,
which headers stay out of ours, and what no tracked file may hold. Prints every breach as FILE:LINE: what; exits 1."""

import re
import subprocess
import sys
from pathlib import Path

# Who may include whom under src/. `base` is open to all; a folder may always include itself. A folder that is not here
# does not exist yet: add its row together with its first file.
MAY_INCLUDE = {
    "base": set(),
    "terminal": set(),
    "client": set(),
    "tensor": set(),
    "formats": {"tensor"},
    "text": set(),
    "kv": set(),
    "ops": {"tensor"},
    "reference": {"ops", "tensor"},
    "cpu": {"ops", "tensor"},
    "model": {"ops", "formats", "tensor"},
    "sampling": {"ops", "tensor"},
    "engine": {"model", "kv", "sampling", "ops", "tensor"},
    "server": {"engine", "text"},
    "hub": {"formats"},
    "lab": {"engine", "model", "ops", "server", "formats"},
}

# Each costs seconds for every file that sees it, so only .cpp files do.
HEAVY = re.compile(r'#include <(nlohmann/|boost/beast)')
INCLUDE = re.compile(r'#include "([a-z_]+)/')
# Below apps/ a value from the environment is a parameter.
ENVIRONMENT = re.compile(r'\b(getenv|secure_getenv|environ)\b')

# A machine's own paths and the address of a package registry: the tree must mean the same wherever it is cloned.
FOREIGN = re.compile(
    r'(/home/\w{2,}/|/root/|/Users/\w|(?<![\w.$}/-])/work/|/mnt/\w'
    r'|pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org|security\.debian\.org|archive\.ubuntu\.com)')

HERE = "tools/check_layout.py"


def tracked_files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if name and Path(name).is_file()]


def test_files(texts):
    """The files that only tests are made of: by their name, or headers that only such files include, with their .cpp."""
    tests = {name for name in texts if re.search(r"(^|_)test(_|$)", Path(name).stem)}
    includers = {}
    for name, text in texts.items():
        for included in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
            header = "src/" + included
            if Path(name) != Path(header).with_suffix(".cpp"):
                includers.setdefault(header, set()).add(name)
    for header, by in includers.items():
        if all(name in tests or name.startswith("tests/") for name in by):
            tests |= {header, str(Path(header).with_suffix(".cpp"))}
    return tests


def breaches_of_source(path, number, line, is_test):
    folder = path.parts[1]
    allowed = MAY_INCLUDE.get(folder)
    if allowed is None:
        if number == 1:
            yield f"src/{folder} has no row in the table of {HERE}"
        return
    if HEAVY.search(line) and path.suffix == ".h":
        yield "a header of ours includes a heavy library"
    if is_test:
        return
    included = INCLUDE.match(line)
    if included and included[1] not in allowed | {folder, "base"}:
        yield f"src/{folder} may not include {included[1]}/ (allowed: {', '.join(sorted(allowed | {folder, 'base'}))})"
    if ENVIRONMENT.search(line.split("//")[0]):
        yield "reads the environment below apps/"


def main():
    texts = {}
    for name in tracked_files():
        try:
            texts[name] = Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            pass  # binary test data
    tests = test_files(texts)
    found = 0
    for name, text in texts.items():
        path = Path(name)
        is_source = path.parts[0] == "src" and path.suffix in {".h", ".cpp"}
        for number, line in enumerate(text.splitlines(), 1):
            problems = list(breaches_of_source(path, number, line, name in tests)) if is_source else []
            foreign = FOREIGN.search(line) if name != HERE else None
            if foreign:
                problems.append(f"holds {foreign[0]!r}")
            for problem in problems:
                print(f"{name}:{number}: {problem}")
                found += 1
    print(f"{len(texts)} files, {found} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
