#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes NOTICE and sbom.cdx.json of a portable build.

usage: notices.py BUILD_FOLDER OUT_FOLDER [lamina_static|lamina_python]

What is linked is read from the link line of the target itself: every archive of
another maker must belong to a Debian package (or to one that
static_libraries.sh built from Debian's sources). Libraries that are used as
headers alone are found by the headers that its objects were compiled with, and
what the report page bundles stands in web/package-lock.json. NOTICE holds their
copyright files, sbom.cdx.json (CycloneDX 1.5) names, versions and licences. Exit
status 1 when the owner of something is not known."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The compiler's own; what of it is linked too, by target.
TOOLCHAIN = {"libstdc++-12-dev", "libgcc-12-dev", "libc6-dev",
             "linux-libc-dev"}
COMPILER = {"lamina_static": {"libstdc++-12-dev", "libgcc-12-dev",
                              "libc6-dev"},
            "lamina_python": {"libstdc++-12-dev", "libgcc-12-dev"}}
# Objects of plug-ins and of other targets.
ELSEWHERE = {"lamina_static": r"_test\.|src/dist/mpi/|src/serve/http/|^python/|"
                              r"^tests/|^bench/",
             "lamina_python": r"_test\.|src/dist/mpi/|"
                              r"src/(cli|mcp|program|serve)/|"
                              r"^tests/|^bench/"}
# Packages of headers whose archive static_libraries.sh built.
BUILT = {"libfmt.a": "libfmt-dev", "libsimdjson.a": "libsimdjson-dev",
         "libisal.a": "libisal-dev", "libxlsxwriter.a": "libxlsxwriter-dev",
         "libzip.a": "libzip-dev", "libre2.a": "libre2-dev",
         "libyaml-cpp.a": "libyaml-cpp-dev", "libbz2.a": "libbz2-dev"}


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True,
                          **more).stdout


def linked_archives(build, target):
    line = run("ninja", "-C", build, "-t", "commands",
               target).strip().splitlines()[-1]
    given = re.sub(r" -o \S+", "", line).split()
    words = [w for w in given if re.search(r"\.(a|so)(\.[0-9.]+)?$", w)]
    shared = [w for w in words if ".so" in w]
    if shared:
        sys.exit(f"the link line holds shared libraries: {shared}")
    own = [w for w in words if not w.startswith("/")]
    foreign = sorted({pathlib.Path(w) for w in words if w.startswith("/")})
    short = {w[2:] for w in line.split()
             if re.fullmatch(r"-l[a-z0-9+_-]+", w)} - {"dl", "atomic"}
    return own, foreign, short


def owner_of(path):
    if path.name in BUILT:
        return BUILT[path.name]
    if path.name.startswith("libabsl_"):
        return "libabsl-dev"
    for candidate in (path, path.resolve(),
                      pathlib.Path("/usr") / path.relative_to("/")):
        found = subprocess.run(["dpkg", "-S", str(candidate)],
                               capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"{path}: no Debian package owns it")


def header_packages(build, target):
    """Packages whose headers the objects of a target were compiled with."""
    files, skip = {}, False
    for line in run("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            skip = re.search(ELSEWHERE[target], line) is not None
        elif not skip and line.strip().startswith("/usr/"):
            path = pathlib.Path(line.strip())
            # One file stands for all of a folder of one library.
            place = path if path.parent.name in ("include", "x86_64-linux-gnu") \
                else path.parent
            files.setdefault(place, path)
    if not files:
        sys.exit(f"{build} holds no objects")
    owners = run("dpkg", "-S", *map(str, sorted(set(files.values()))))
    return {line.split(":")[0] for line in owners.splitlines()} - TOOLCHAIN


def licences(text):
    """Short names in a machine-readable copyright file, or none."""
    names = re.findall(r"^License:\s*(\S.*)$", text, re.M)
    return sorted({n.strip() for n in names})


def debian(package):
    name, version, source = run(
        "dpkg-query", "-W", "-f",
        "${Package}\t${Version}\t${source:Package}", package).split("\t")
    copyright_file = pathlib.Path("/usr/share/doc") / name / "copyright"
    text = copyright_file.read_text(errors="replace")
    return {"name": source, "version": version, "text": text,
            "licences": licences(text),
            "purl": f"pkg:deb/debian/{source}@{version}?distro=debian-12"}


def npm(build):
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    for path, entry in sorted(lock["packages"].items()):
        if not path or entry.get("dev"):
            continue
        name = path.split("node_modules/")[-1]
        texts = [p.read_text(errors="replace") for p in
                 sorted((pathlib.Path(build) / "web" / path).glob("LICENSE*"))]
        if not texts:
            sys.exit(f"no licence of {name}: the page is not in this build")
        yield {"name": name, "version": entry["version"],
               "licences": [entry.get("license", "")],
               "text": "\n".join(texts),
               "purl": f"pkg:npm/{name.replace('@', '%40')}@"
                       f"{entry['version']}"}


def main():
    target = sys.argv[3] if len(sys.argv) == 4 else "lamina_static"
    if len(sys.argv) < 3 or target not in COMPILER:
        sys.exit(__doc__)
    build, out = sys.argv[1], pathlib.Path(sys.argv[2])
    own, foreign, short = linked_archives(build, target)
    if not own or not foreign:
        sys.exit(f"no archives in the link line of {target}")
    packages = {owner_of(path) for path in foreign}
    for name in short:
        packages.add(owner_of(pathlib.Path(run(
            "c++", f"-print-file-name=lib{name}.a").strip())))
    packages |= COMPILER[target] | header_packages(build, target)
    parts = {}
    for part in [debian(p) for p in sorted(packages)] + list(npm(build)):
        parts.setdefault(part["name"], part)
    version = re.search(r"project\(lamina VERSION (\S+)",
                        (ROOT / "CMakeLists.txt").read_text()).group(1)
    with open(out / "NOTICE", "w", encoding="utf-8") as notice:
        notice.write(f"lamina {version} holds the following works of others.\n")
        for name, part in sorted(parts.items()):
            notice.write(f"\n{'=' * 78}\n{name} {part['version']}\n"
                         f"{'=' * 78}\n{part['text'].rstrip()}\n")
    sbom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "name": "lamina", "version": version,
            "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [
            {"type": "library", "name": part["name"],
             "version": part["version"], "purl": part["purl"],
             "licenses": [{"license": {"name": licence}}
                          for licence in part["licences"] if licence]}
            for _, part in sorted(parts.items())]}
    (out / "sbom.cdx.json").write_text(json.dumps(sbom, indent=1) + "\n")
    print(f"{len(parts)} works of others in NOTICE and sbom.cdx.json")


main()
