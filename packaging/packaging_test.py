#!/usr/bin/env python3
"""Tests of install.py and package.py with the program of a build folder: packaging_test.py BUILD. ctest runs it.

What the list of parts must hold is not taken from its table, but from the compiler's dependency files and from what
the linker opens when the program is linked anew.
"""
import gzip
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

from components import COMPONENTS, bill_of_materials, owners

HERE = Path(__file__).resolve().parent
BUILD = Path(sys.argv.pop(1)).resolve()
PROGRAM = "bin/inferd"
MANUAL = "share/man/man1/inferd.1"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/inferd",
    "zsh": "share/zsh/site-functions/_inferd",
    "fish": "share/fish/vendor_completions.d/inferd.fish",
}
DOCUMENTS = "share/doc/inferd"
INSTALLED = {PROGRAM, MANUAL, *COMPLETIONS.values(), f"{DOCUMENTS}/LICENSE", f"{DOCUMENTS}/THIRD-PARTY-NOTICES.txt"}


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(*arguments, **options):
    return run(sys.executable, HERE / "install.py", "--build", BUILD, *arguments, **options)


def tree(folder):
    """Path below the folder -> (content, mode); folders too, with content None."""
    return {str(path.relative_to(folder)): (None if path.is_dir() else path.read_bytes(), path.stat().st_mode & 0o777)
            for path in folder.rglob("*")}


def files_of(folder):
    return {name for name, (content, _) in tree(folder).items() if content is not None}


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="inferd-packaging-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = self.folder / "prefix"

    def assert_ended(self, done, code):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)


class Installing(Scratch):
    def test_puts_every_file_in_its_place_and_names_it(self):
        done = install(self.prefix, umask=0o077)
        self.assert_ended(done, 0)
        made = tree(self.prefix)
        self.assertEqual(files_of(self.prefix), INSTALLED)
        for name, (content, mode) in made.items():
            self.assertEqual(mode, 0o755 if content is None or name == PROGRAM else 0o644, name)
        self.assertEqual({line.split("  ")[0] for line in done.stdout.splitlines()},
                         {str(self.prefix / name) for name in INSTALLED})
        self.assertEqual(made[PROGRAM][0], (BUILD / "inferd").read_bytes())
        self.assertEqual(made[f"{DOCUMENTS}/LICENSE"][0], (HERE.parent / "LICENSE").read_bytes())
        self.assertEqual(json.loads(must(self.prefix / PROGRAM, "version", "--json")),
                         json.loads(must(BUILD / "inferd", "version", "--json")))

    def test_notices_hold_the_terms_of_those_that_ask_for_it(self):
        self.assert_ended(install(self.prefix), 0)
        text = (self.prefix / DOCUMENTS / "THIRD-PARTY-NOTICES.txt").read_text()
        for terms in ["Niels Lohmann", "The above copyright notice and this permission notice",
                      "The OpenSSL Project Authors", "Jean-loup Gailly and Mark Adler", "BSL-1.0",
                      "GPL-3.0-or-later WITH GCC-exception-3.1"]:
            self.assertIn(terms, text)

    def test_manual_is_a_manual(self):
        self.assert_ended(install(self.prefix), 0)
        manual = self.prefix / MANUAL
        self.assertRegex(manual.read_text(), r'(?m)^\.TH "?INFERD"? "?1"?')
        if shutil.which("man") and shutil.which("groff"):
            shown = run("man", "--local-file", "--warnings", manual,
                        env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        elif shutil.which("groff"):
            shown = run("groff", "-man", "-Tutf8", "-ww", manual)
        else:
            self.skipTest("neither man nor groff is here")
        self.assert_ended(shown, 0)
        self.assertEqual(shown.stderr, "")
        self.assertIn("INFERD(1)", shown.stdout)

    def test_completions_are_scripts_of_their_shells(self):
        self.assert_ended(install(self.prefix), 0)
        for shell, name in COMPLETIONS.items():
            if shutil.which(shell):
                done = run(shell, "-n", self.prefix / name)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_says_what_PATH_makes_of_it(self):
        folder = self.prefix / "bin"
        other = self.folder / "other"
        other.mkdir()
        (other / "inferd").write_text("#!/bin/sh\n")
        (other / "inferd").chmod(0o755)
        for path, said in [
                (f"{folder}:/usr/bin:/bin", f"{folder} is on PATH.\n"),
                (f"{other}:{folder}:/usr/bin:/bin",
                 f"{folder} is on PATH, but `inferd` means {other}/inferd, which comes first there.\n"),
                ("/usr/bin:/bin", f'{folder} is not on PATH. Put this into ~/.profile and log in anew:\n'
                                  f'  export PATH="{folder}:$PATH"\n')]:
            self.assertEqual(install(self.prefix, env={**os.environ, "PATH": path}).stderr, said)

    def test_a_second_time_changes_nothing(self):
        self.assert_ended(install(self.prefix), 0)
        before = {path: path.stat().st_mtime_ns for path in self.prefix.rglob("*")}
        done = install(self.prefix)
        self.assert_ended(done, 0)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.prefix.rglob("*")}, before)
        self.assertEqual({line.split("  ")[1] for line in done.stdout.splitlines()}, {"as it was"})

    def test_mends_what_was_changed(self):
        self.assert_ended(install(self.prefix), 0)
        whole = tree(self.prefix)
        (self.prefix / MANUAL).write_text("cut sh")
        (self.prefix / PROGRAM).chmod(0o644)
        (self.prefix / COMPLETIONS["zsh"]).unlink()
        done = install(self.prefix)
        self.assert_ended(done, 0)
        self.assertEqual(tree(self.prefix), whole)
        self.assertEqual(done.stdout.count("written"), 3)

    def test_takes_the_default_prefix_from_HOME(self):
        done = install("--check", env={key: value for key, value in os.environ.items() if key != "HOME"})
        self.assert_ended(done, 2)
        self.assertEqual(done.stderr, "error: no PREFIX was given, and HOME is not set\n"
                                      "fix: give a PREFIX, such as /usr/local\n")
        done = install(env={**os.environ, "HOME": str(self.folder)})
        self.assert_ended(done, 0)
        self.assertEqual(files_of(self.folder / ".local"), INSTALLED)

    def test_is_not_touched_by_the_configuration_of_who_installs(self):
        home = self.folder / "home"
        (home / ".config/inferd").mkdir(parents=True)
        (home / ".config/inferd/inferd.toml").write_text("no such key = 1\n")
        done = install(self.prefix, env={**os.environ, "HOME": str(home), "INFERD_NO_SUCH_NAME": "1"}, cwd=home)
        self.assert_ended(done, 0)

    def test_needs_a_built_program(self):
        done = run(sys.executable, HERE / "install.py", "--build", self.folder, self.prefix)
        self.assert_ended(done, 65)
        self.assertIn("fix: ./dev build", done.stderr)
        self.assertFalse(self.prefix.exists())

    def refused(self, code, said, **options):
        """Installing again fails, with what was there as it was."""
        before = tree(self.folder)
        done = install(self.prefix, **options)
        self.assert_ended(done, code)
        self.assertIn(said, done.stderr)
        self.assertIn("\nfix: ", done.stderr)
        self.assertEqual(tree(self.folder), before)

    def test_refuses_what_is_in_the_way(self):
        self.prefix.write_text("a file\n")
        self.refused(73, f"error: cannot install to {self.prefix}: Not a directory\n  {self.prefix}\n")
        self.assert_ended(install("--check", self.prefix), 73)
        self.prefix.unlink()
        (self.prefix / COMPLETIONS["fish"]).mkdir(parents=True)
        self.refused(73, f"Is a directory\n  {self.prefix / COMPLETIONS['fish']}\n")

    def test_refuses_a_prefix_without_permission(self):
        if os.geteuid() == 0:  # who may write anywhere but there
            self.prefix = Path("/sys/inferd")
        else:
            self.prefix.mkdir(mode=0o555)
        self.refused(77, f"error: cannot install to {self.prefix}: ")
        self.assertIn(f"sudo {HERE}/install.py {self.prefix}\n", install(self.prefix).stderr)

    def test_a_full_disk_leaves_what_was_there(self):
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))}
        self.refused(73, "File too large", **limit)
        self.assert_ended(install(self.prefix), 0)
        (self.prefix / PROGRAM).write_text("an older one\n")
        (self.prefix / MANUAL).write_text("an older one\n")
        self.refused(73, "File too large", **limit)

    def test_stopped_at_any_moment_it_is_there_or_not(self):
        outcomes = set()
        for tenth in range(0, 10):
            shutil.rmtree(self.prefix, ignore_errors=True)
            process = subprocess.Popen([sys.executable, HERE / "install.py", "--build", BUILD, self.prefix],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(tenth / 20)
            process.terminate()
            process.communicate()
            outcomes.add(frozenset(files_of(self.prefix)))
        self.assertLessEqual(outcomes, {frozenset(), frozenset(INSTALLED)})


class Removing(Scratch):
    def test_takes_away_what_was_installed_and_nothing_else(self):
        self.assert_ended(install(self.prefix), 0)
        others = {"bin/another", f"{DOCUMENTS}/notes", "share/inferd/models/model.gguf"}
        for name in others:
            (self.prefix / name).parent.mkdir(parents=True, exist_ok=True)
            (self.prefix / name).write_text("mine\n")
        done = install("--remove", self.prefix)
        self.assert_ended(done, 0)
        self.assertEqual(done.stdout.count("  removed\n"), len(INSTALLED))
        self.assertEqual(files_of(self.prefix), others)
        (self.prefix / DOCUMENTS / "notes").unlink()
        done = install("--remove", self.prefix)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(done.stderr, f"There was no inferd below {self.prefix}.\n")
        self.assertFalse((self.prefix / DOCUMENTS).exists())


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="inferd-packaging-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.out = cls.folder / "out"
        make = [sys.executable, HERE / "package.py", "--build", BUILD, "--out"]
        cls.made = [Path(line) for line in must(*make, cls.out).splitlines()]
        # The same again, by somebody else: another folder, time zone, locale and umask.
        cls.again = cls.folder / "again"
        must(*make, cls.again, env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"}, umask=0o077, cwd="/")
        cls.about = json.loads(must(BUILD / "inferd", "version", "--json"))
        cls.top = f"inferd-{cls.about['version']}-linux-{os.uname().machine}"
        cls.tar = cls.out / f"{cls.top}.tar.gz"
        cls.deb = next(path for path in cls.made if path.suffix == ".deb")
        with tarfile.open(cls.tar) as archive:
            cls.members = archive.getmembers()
        must("tar", "-xzf", cls.tar, "-C", cls.folder)
        cls.unpacked = cls.folder / cls.top
        cls.debian = cls.folder / "debian"
        must("dpkg-deb", "--raw-extract", cls.deb, cls.debian)
        cls.commit_time = int(os.environ.get("SOURCE_DATE_EPOCH") or
                              must("git", "-C", HERE, "log", "-1", "--format=%ct"))

    def test_the_same_program_gives_the_same_bytes(self):
        self.assertEqual(tree(self.out), tree(self.again))
        self.assertEqual({path.name for path in self.made}, files_of(self.out))

    def test_sums_are_right(self):
        must("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.out)
        must("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=self.unpacked)
        listed = {line.split("  ")[1] for line in (self.unpacked / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual(listed | {"SHA256SUMS"}, files_of(self.unpacked))

    def test_archive_holds_what_an_installation_has(self):
        self.assertEqual(files_of(self.unpacked), INSTALLED | {
            "SHA256SUMS", f"{DOCUMENTS}/inferd.spdx.json", "lib/systemd/system/inferd.service"})
        names = [member.name for member in self.members]
        self.assertEqual(names, sorted(names))
        for member in self.members:
            self.assertEqual((member.uid, member.gid, member.uname, member.gname, member.mtime),
                             (0, 0, "", "", self.commit_time), member.name)
            self.assertEqual(member.mode, 0o755 if member.isdir() or member.name.endswith(PROGRAM) else 0o644)
        self.assertEqual((self.tar.read_bytes()[3:8]), bytes(5))  # gzip: no name, no time

    def test_program_is_stripped_and_runs(self):
        self.assertNotIn(".symtab", must("readelf", "--section-headers", "--wide", self.unpacked / PROGRAM))
        self.assertEqual(json.loads(must(self.unpacked / PROGRAM, "version", "--json")), self.about)

    def test_program_needs_only_libc_and_libm(self):
        loaded = set(re.findall(r"^\s+(\S+) =>", must("ldd", self.unpacked / PROGRAM), re.MULTILINE))
        self.assertLessEqual(loaded, {"libc.so.6", "libm.so.6", "linux-vdso.so.1"})

    def test_debian_package_holds_the_same(self):
        found = files_of(self.debian)
        self.assertEqual({name for name in found if not name.startswith("DEBIAN/")}, {
            "usr/bin/inferd", "usr/share/man/man1/inferd.1.gz", "usr/share/bash-completion/completions/inferd",
            "usr/share/zsh/vendor-completions/_inferd", "usr/share/fish/vendor_completions.d/inferd.fish",
            "usr/share/doc/inferd/copyright", "usr/share/doc/inferd/THIRD-PARTY-NOTICES.txt",
            "usr/share/doc/inferd/inferd.spdx.json", "usr/lib/systemd/system/inferd.service"})
        self.assertEqual((self.debian / "usr/bin/inferd").read_bytes(), (self.unpacked / PROGRAM).read_bytes())
        self.assertEqual(gzip.decompress((self.debian / "usr/share/man/man1/inferd.1.gz").read_bytes()),
                         (self.unpacked / MANUAL).read_bytes())
        must("md5sum", "--check", "--strict", "DEBIAN/md5sums", cwd=self.debian)
        listed = {line.split("  ")[1] for line in (self.debian / "DEBIAN/md5sums").read_text().splitlines()}
        self.assertEqual(listed, {name for name in found if not name.startswith("DEBIAN/")})
        for line in must("dpkg-deb", "--contents", self.deb).splitlines():
            self.assertRegex(line, r"^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) root/root ")

    def test_debian_package_says_what_it_needs(self):
        field = lambda name: must("dpkg-deb", "--field", self.deb, name).strip()
        self.assertEqual(field("Package"), "inferd")
        self.assertEqual(field("Version"), self.about["version"])
        self.assertEqual(field("Architecture"), must("dpkg", "--print-architecture").strip())
        needed = {tuple(map(int, found)) for found in
                  re.findall(r"GLIBC_(\d+)\.(\d+)", must("readelf", "--version-info", self.debian / "usr/bin/inferd"))}
        major, minor = max({(2, 36), *needed})
        self.assertEqual(field("Depends"), f"libc6 (>= {major}.{minor})")

    def test_debian_package_starts_nothing(self):
        scripts = {path.name: path.read_text() for path in (self.debian / "DEBIAN").iterdir()}
        self.assertEqual(set(scripts), {"control", "md5sums", "postinst", "prerm"})
        self.assertNotRegex(scripts["postinst"], r"enable|start|preset")
        for name in ["postinst", "prerm"]:
            must("sh", "-n", self.debian / "DEBIAN" / name)

    def test_unit_is_one_and_waits_for_the_drain(self):
        for root, folder in [(self.debian / "usr/lib", "/usr/bin"), (self.unpacked / "lib", "/usr/local/bin")]:
            text = (root / "systemd/system/inferd.service").read_text()
            self.assertIn(f"\nExecStart={folder}/inferd serve ", text)
            self.assertNotIn("@BINDIR@", text)
            drain = re.search(r"--drain-timeout .*?\[(\d+)", must(BUILD / "inferd", "serve", "--help"), re.DOTALL)
            stop = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
            self.assertGreaterEqual(int(stop[1]), int(drain[1]) + 5)
            if shutil.which("systemd-analyze"):
                unit = self.folder / "inferd.service"
                unit.write_text(text.replace(f"{folder}/inferd", str(BUILD / "inferd")))
                checked = run("systemd-analyze", "verify", "--man=no", unit)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))


class Version(unittest.TestCase):
    def test_says_what_it_is_and_what_this_chip_runs(self):
        about = json.loads(must(BUILD / "inferd", "version", "--json"))
        self.assertEqual(set(about), {"version", "commit", "compiler", "isa", "libraries"})
        self.assertRegex(about["version"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(about["commit"], r"^([0-9a-f]{7,}\+?|unknown)$")
        self.assertRegex(about["compiler"], r"^GNU \d+\.\d+\.\d+ Release$")
        flags = set(re.search(r"^flags\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
        avx2 = {"avx2", "fma", "f16c", "bmi2"} <= flags
        avx512 = avx2 and {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= flags
        levels = {"portable": True, "avx2": avx2, "avx512": avx512, "avx512_bf16": avx512 and "avx512_bf16" in flags}
        self.assertEqual(about["isa"]["available"], [name for name, here in levels.items() if here])
        self.assertEqual(about["isa"]["chosen"], "avx512" if avx512 else "avx2" if avx2 else "portable")

    def test_for_people_is_short(self):
        self.assertLessEqual(len(must(BUILD / "inferd", "version").splitlines()), 3)


class Parts(unittest.TestCase):
    """The bill of materials against what the build really took."""

    @classmethod
    def setUpClass(cls):
        compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
        cls.about = json.loads(must(BUILD / "inferd", "version", "--json"))
        cls.bill = json.loads(bill_of_materials(cls.about, "0" * 64, compiler, 1_700_000_000))
        cls.parts = {part["name"]: part for part in cls.bill["packages"]}

    @staticmethod
    def headers():
        """What was included from outside of the tree by any file that the program is linked of."""
        inputs = must("ninja", "-C", BUILD, "-t", "inputs", "inferd").splitlines()
        objects = {line for line in inputs if line.endswith(".o")}
        found, seen = set(), set()
        for block in must("ninja", "-C", BUILD, "-t", "deps").split("\n\n"):
            first, *rest = block.splitlines() or [""]
            name = first.partition(":")[0]
            if name in objects:
                seen.add(name)
                found |= {line.strip() for line in rest}
        assert objects and objects == seen, f"no dependencies known of {sorted(objects - seen)[:3]}"
        return {path for path in found if path.startswith("/usr/")}

    @staticmethod
    def linked():
        """What the linker reads from outside of the tree when the program is linked, shared libraries apart."""
        link = must("ninja", "-C", BUILD, "-t", "commands", "inferd").splitlines()[-1]
        with tempfile.TemporaryDirectory() as folder:
            again = link.replace(" -o inferd ", f" -o {folder}/inferd -Wl,--trace ")
            assert again != link
            traced = must("bash", "-c", again, cwd=BUILD)
        paths = {re.sub(r"^trace: |\(.*\)$", "", line) for line in traced.splitlines()}
        return {path for path in paths if path.startswith("/") and not re.search(r"\.so(\.\d+)*$", path)}

    def test_lists_all_that_was_compiled_and_linked_and_nothing_else(self):
        stated = {part["sourceInfo"].removeprefix("Debian package ")
                  for name, part in self.parts.items() if name != "inferd"}
        taken = {package.partition(":")[0] for package in owners(self.headers() | self.linked()).values()}
        # Names and numbers of the kernel's interface; no code.
        self.assertEqual(taken - {"linux-libc-dev"}, stated)

    def test_a_library_that_is_linked_is_one_that_the_linker_reads(self):
        archives = {Path(path).name for path in self.linked()}
        for name in ["libcrypto.a", "libz.a", "libstdc++.a", "libgcc.a", "Scrt1.o"]:
            self.assertIn(name, archives)

    def test_versions_are_those_of_the_packages_and_of_the_program(self):
        for name, part in self.parts.items():
            if name != "inferd":
                package = part["sourceInfo"].removeprefix("Debian package ")
                versions = must("dpkg-query", "-W", "-f=${Version}\n", package).split()
                self.assertIn(part["versionInfo"], versions, name)
        compiled = self.about["libraries"]
        self.assertEqual(set(compiled), {"boost", "nlohmann-json", "openssl", "zlib"})
        for name, version in compiled.items():
            without_epoch = self.parts[name]["versionInfo"].rpartition(":")[2]
            self.assertRegex(without_epoch, rf"^{re.escape(version)}([^0-9]|$)", name)
        self.assertEqual(self.parts["inferd"]["versionInfo"], self.about["version"])

    def test_states_the_licences(self):
        gcc = "GPL-3.0-or-later WITH GCC-exception-3.1"
        self.assertEqual({name: part["licenseDeclared"] for name, part in self.parts.items()}, {
            "inferd": "Apache-2.0", "boost": "BSL-1.0", "nlohmann-json": "MIT", "openssl": "Apache-2.0", "zlib": "Zlib",
            "libstdc++": gcc, "libgcc": gcc, "glibc": "LGPL-2.1-or-later"})

    def test_is_a_document_that_holds_together(self):
        self.assertEqual((self.bill["spdxVersion"], self.bill["dataLicense"], self.bill["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertEqual(self.bill["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        ids = [part["SPDXID"] for part in self.bill["packages"]]
        self.assertEqual(len(set(ids)), len(COMPONENTS) + 1)
        for one in ids:
            self.assertRegex(one, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for part in self.bill["packages"]:
            for reference in part.get("externalRefs", []):
                self.assertRegex(reference["referenceLocator"],
                                 r"^pkg:deb/[a-z]+/[^@/ ]+@[^@/:+ ]+\?arch=source&distro=[a-z]+$")
        related = {(one["spdxElementId"], one["relatedSpdxElement"]) for one in self.bill["relationships"]}
        self.assertEqual(related, {("SPDXRef-DOCUMENT", "SPDXRef-inferd"),
                                   *(("SPDXRef-inferd", one) for one in ids if one != "SPDXRef-inferd")})


if __name__ == "__main__":
    unittest.main()
