"""What is inside of the program besides our own code, as one table, and what is made of it: the list of parts in SPDX
2.3 (https://spdx.github.io/spdx-spec/v2.3/) and the notices that some licences ask for.

Licences are stated here; versions and notices are asked from the Debian packages of the machine that builds.
packaging_test.py compares the table with what the compiler and the linker read.
"""
import datetime
import functools
import json
import re
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

GCC_LICENCE = "GPL-3.0-or-later WITH GCC-exception-3.1"


class PackagingError(Exception):
    """Says what, where and the fix, on a line each."""


@dataclass(frozen=True)
class Component:
    name: str
    licence: str  # an SPDX expression
    owned: str  # a file of the Debian package: a path, or a name that the compiler finds
    relation: str = "STATIC_LINK"  # of the program to it, in the words of SPDX
    notice: bool = False  # its licence asks for copyright and text beside a program
    about: str = ""


COMPONENTS = [
    Component("boost", "BSL-1.0", "/usr/include/boost/version.hpp",
              about="Headers only: Asio, Beast and what they use."),
    Component("nlohmann-json", "MIT", "/usr/include/nlohmann/json.hpp", notice=True, about="Headers only."),
    Component("openssl", "Apache-2.0", "/usr/include/openssl/opensslv.h", notice=True),
    Component("zlib", "Zlib", "/usr/include/zlib.h", notice=True),
    Component("libstdc++", GCC_LICENCE, "libstdc++.a"),
    Component("libgcc", GCC_LICENCE, "libgcc.a"),
    Component("glibc", "LGPL-2.1-or-later", "Scrt1.o", "DYNAMIC_LINK",
              about="libc.so.6 and libm.so.6 of the system that runs the program. Inside of it are only the start-up "
                    "objects and libc_nonshared.a, which glibc lets any program link without conditions."),
]


def run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise PackagingError(f"error: {command[0]} is not here\nfix: do this on Debian or its kin, whose packages say "
                             "what the program is made of")


def output(*command):
    done = run(*command)
    if done.returncode != 0:
        raise PackagingError(f"error: {' '.join(command)} failed\n  {done.stderr.strip()}")
    return done.stdout


def owners(paths):
    """Path -> the Debian package that owns it, as dpkg-query takes it; a path that none owns is an error."""
    real = {path: str(Path(path).resolve()) for path in paths}
    found = {}
    for line in run("dpkg-query", "-S", *sorted(set(real.values()))).stdout.splitlines():
        packages, _, path = line.partition(": ")
        found[path] = packages.split(", ")[0]
    for path in real.values():
        if path not in found:
            raise PackagingError(f"error: no Debian package owns {path}\n"
                                 "fix: build with the packages that ./dev setup installs")
    return {path: found[real[path]] for path in paths}


@dataclass(frozen=True)
class Origin:
    package: str
    version: str
    source: str
    source_version: str


@functools.cache
def origins(compiler):
    """Name of a component -> the installed package that it came from."""
    path_of = {one.name: one.owned if one.owned.startswith("/") else
               output(compiler, f"-print-file-name={one.owned}").strip() for one in COMPONENTS}
    owner = owners(path_of.values())
    asked = "${binary:Package} ${Package} ${Version} ${source:Package} ${source:Version}\n"
    said = output("dpkg-query", "-W", f"-f={asked}", *sorted(set(owner.values())))
    known = {words[0]: Origin(*words[1:]) for words in (line.split() for line in said.splitlines())}
    return {name: known[owner[path]] for name, path in path_of.items()}


def distribution():
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in text.splitlines())}


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.replace("+", "p"))


def bill_of_materials(about, sha256, compiler, epoch):
    """The SPDX document as text. `about`: what `inferd version --json` says; `sha256`: of the packed program."""
    system = distribution()
    packages = [{
        "name": "inferd", "SPDXID": spdx_id("inferd"), "versionInfo": about["version"],
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256}],
        "sourceInfo": f"commit {about['commit']}, compiled by {about['compiler']}; the checksum is that of bin/inferd",
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "Copyright 2026 The inferd authors", "supplier": "Organization: The inferd authors",
    }]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id("inferd"))]
    for component in COMPONENTS:
        origin = origins(compiler)[component.name]
        source, version = quote(origin.source, safe=""), quote(origin.source_version, safe="")
        entry = {
            "name": component.name, "SPDXID": spdx_id(component.name), "versionInfo": origin.version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "primaryPackagePurpose": "LIBRARY",
            "sourceInfo": f"Debian package {origin.package}", "supplier": f"Organization: {system['NAME']}",
            "licenseConcluded": component.licence, "licenseDeclared": component.licence, "copyrightText": "NOASSERTION",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/{system['ID']}/{source}@{version}"
                                    f"?arch=source&distro={system['VERSION_CODENAME']}"}],
        }
        if component.about:
            entry["comment"] = component.about
        packages.append(entry)
        relations.append((spdx_id("inferd"), component.relation, spdx_id(component.name)))
    name = f"inferd-{about['version']}"
    content = json.dumps([packages, relations], sort_keys=True)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        # The same content has the same name everywhere.
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: inferd-packaging-{about['version']}"]},
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def notices(compiler):
    """The text that goes with every copy of the program, besides our own licence."""
    linked = [component for component in COMPONENTS if component.relation == "STATIC_LINK"]
    text = "inferd is under the Apache License 2.0. Linked into the program are parts of these:\n\n"
    for component in linked:
        text += f"  {component.name:<15}{origins(compiler)[component.name].version:<24}{component.licence}\n"
    text += "\nWhat follows is what the Debian packages of those say that ask to be named with a copy.\n"
    for component in linked:
        if component.notice:
            package = origins(compiler)[component.name].package
            path = Path(f"/usr/share/doc/{package}/copyright")
            try:
                said = path.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise PackagingError(f"error: the copyright of {component.name} cannot be read: {error.strerror}\n"
                                     f"  {path}\nfix: apt-get install --reinstall {package} (a system that keeps no "
                                     "documentation has to keep the files called copyright)")
            text += f"\n{'=' * 100}\n{component.name}\n{'=' * 100}\n\n{said}\n"
    return text
