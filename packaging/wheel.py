#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the module lamina of a portable build as a wheel.

usage: wheel.py BUILD_FOLDER OUT_FOLDER

The module is linked statically but for libc. Its tag says the Python that it was
built for (pybind11 of Debian 12 knows no stable ABI) and the oldest libc that it
loads with, which is read from its symbols. The same commit gives the same bytes.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What any Linux has (PEP 600), and of it only libc's.
SHARED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
          "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def run(*words):
    return subprocess.run([*map(str, words)], check=True, capture_output=True,
                          text=True).stdout


def tag_of(module):
    """cp311-cp311-manylinux_2_34_x86_64, or an exit that says why not."""
    needed = set(re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", module)))
    if needed - SHARED:
        sys.exit(f"{module.name} needs {sorted(needed - SHARED)}")
    symbols = run("objdump", "-T", module)
    shown = re.findall(r" g +D\w* +\S+\s+[0-9a-f]+\s+\S+\s+(\S+)$", symbols, re.M)
    minor = max(int(v) for v in re.findall(r"GLIBC_2\.(\d+)", symbols))
    python, machine = re.search(r"cpython-(\d+)-([a-z0-9_]+)-linux",
                                module.name).groups()
    return f"cp{python}-cp{python}-manylinux_2_{minor}_{machine}", shown


def metadata(version, python):
    return f"""Metadata-Version: 2.1
Name: lamina
Version: {version}
Summary: Traces of AI workloads, opened once and asked many times
License: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: =={python[0]}.{python[1:]}.*
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Provides-Extra: pandas
Requires-Dist: pandas; extra == 'pandas'

The module lamina opens the trace of a profiler (PyTorch, Nsight Systems, JAX,
ROCm, Perfetto) once and answers tables, SQL and reports:

    import lamina
    t = lamina.open("trace.json.gz")
    print(t.report().verdict)
    t.ops.to_pandas()
    t.query("SELECT name, sum(dur_ns) AS ns FROM kernel GROUP BY name")

It needs nothing else; columns need numpy, to_pandas needs pandas.
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, out = (pathlib.Path(a) for a in sys.argv[1:])
    package = build / "python/lamina"
    (module,) = package.glob("_core.*.so")
    version = re.search(r"project\(lamina VERSION (\S+)",
                        (ROOT / "CMakeLists.txt").read_text()).group(1)
    epoch = int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    tag, shown = tag_of(module)
    if shown != ["PyInit__core"]:
        sys.exit(f"{module.name} shows {shown}")
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        run("strip", "-o", stage / module.name, module)
        files[f"lamina/{module.name}"] = (stage / module.name).read_bytes()
        print(run(sys.executable, ROOT / "packaging/notices.py", build, stage,
                  "lamina_python").strip())
        info = f"lamina-{version}.dist-info"
        for name in ("NOTICE", "sbom.cdx.json"):
            files[f"{info}/{name}"] = (stage / name).read_bytes()
    for path in sorted(package.iterdir()):
        if path.suffix in (".py", ".pyi", ".typed"):
            files[f"lamina/{path.name}"] = path.read_bytes()
    files["lamina/py.typed"] = (package / "py.typed").read_bytes()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = metadata(version, tag[2:5]).encode()
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: lamina packaging/wheel.py\n"
        f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = f"{info}/RECORD"
    lines = [f"{name},sha256=" + base64.urlsafe_b64encode(
        hashlib.sha256(data).digest()).decode().rstrip("=") + f",{len(data)}\n"
             for name, data in sorted(files.items())]
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"lamina-{version}-{tag}.whl"
    when = tuple(map(int, run("date", "-u", "-d", f"@{epoch}",
                              "+%Y %m %d %H %M %S").split()))
    # RECORD comes last, as PEP 427 recommends.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED,
                         compresslevel=9) as archive:
        for name in sorted(files, key=lambda n: (n.startswith(info),
                                                 n == record, n)):
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else
                                   0o644) << 16
            archive.writestr(entry, files[name])
    print(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}")
    print(f"{wheel} {os.path.getsize(wheel)} bytes")


main()
