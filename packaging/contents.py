"""The files that an installation of inferd has, wherever it goes. install.py and package.py write them."""
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from components import PackagingError, notices

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"

PROGRAM = "bin/inferd"
MANUAL = "share/man/man1/inferd.1"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/inferd",
    "zsh": "share/zsh/site-functions/_inferd",
    "fish": "share/fish/vendor_completions.d/inferd.fish",
}
DOCUMENTS = "share/doc/inferd"
LICENCE = f"{DOCUMENTS}/LICENSE"
NAMES = [MANUAL, *COMPLETIONS.values(), LICENCE, f"{DOCUMENTS}/THIRD-PARTY-NOTICES.txt", PROGRAM]


@dataclass(frozen=True)
class Entry:
    content: bytes
    mode: int = 0o644


def said_by(program, *arguments):
    """What the program prints. It must not depend on who packs: no configuration and no INFERD_ variable of theirs."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8",
                   "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "XDG_DATA_HOME": "/nonexistent"}
    try:
        done = subprocess.run([program, *arguments], env=environment, cwd="/", capture_output=True, timeout=60)
    except OSError as error:
        raise PackagingError(f"error: the program cannot be run: {error.strerror}\n  {program}\nfix: ./dev build")
    if done.returncode != 0 or not done.stdout:
        raise PackagingError(f"error: `inferd {' '.join(arguments)}` ended with {done.returncode}\n"
                             f"  {done.stderr.decode(errors='replace').strip()}\nfix: ./dev build")
    return done.stdout


def about(program):
    return json.loads(said_by(program, "version", "--json"))


def compiler_of(build):
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError as error:
        raise PackagingError(f"error: this is no build folder: {error.strerror}\n  {build}\nfix: ./dev build")
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]


def contents(build):
    """Path below the prefix -> Entry, in the order of NAMES."""
    program = build / "inferd"
    try:
        code = program.read_bytes()
    except OSError as error:
        raise PackagingError(f"error: the program cannot be read: {error.strerror}\n  {program}\nfix: ./dev build")
    texts = [said_by(program, "man")]
    texts += [said_by(program, "completion", shell) for shell in COMPLETIONS]
    texts += [(ROOT / "LICENSE").read_bytes(), notices(compiler_of(build)).encode()]
    return dict(zip(NAMES, [*map(Entry, texts), Entry(code, 0o755)], strict=True))

