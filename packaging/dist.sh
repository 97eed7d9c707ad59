#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: dist.sh BUILD_FOLDER OUT_FOLDER
#
# Packs a build of the preset "portable" as
# lamina-VERSION-linux-ARCHITECTURE.tar.xz: one program that needs nothing but a
# kernel, manual pages, completions, licences, the list of what is linked; beside
# it, for `ranks --engine mpi` alone, the same program with the machine's libc,
# and its plug-in. Debug data is an archive of its own. The same commit in the same
# folder gives the same bytes.
set -euo pipefail
build=$1
out=$(mkdir -p "$2" && cd "$2" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The newest symbols of libc that the program with the machine's libc may ask
# for: those of Debian 12, which Ubuntu 24.04 has too.
newest_libc=2.36

version=$("$build/lamina_static" --version | head -1 | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
name=lamina-$version-linux-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/$name
mkdir -p "$tree/bin" "$tree/lib/lamina" "$tree/share/doc/lamina" "$stage/debug"

put() { # built installed
  # The build may have put line tables beside the program already.
  local debug=$1
  [ ! -e "$1.debug" ] || debug=$1.debug
  objcopy --only-keep-debug "$debug" "$stage/debug/$(basename "$2").debug"
  strip -R .gnu_debuglink -o "$2" "$1"
  (cd "$stage/debug" &&
    objcopy --add-gnu-debuglink="$(basename "$2").debug" "$2")
}
put "$build/lamina_static" "$tree/bin/lamina"
put "$build/lamina" "$tree/lib/lamina/lamina-mpi"
[ -e "$build/lamina_mpi.so" ] &&
  put "$build/lamina_mpi.so" "$tree/lib/lamina/lamina_mpi.so"
[ -e "$build/lamina_http.so" ] &&
  put "$build/lamina_http.so" "$tree/lib/lamina/lamina_http.so"
[ -e "$build/lamina_postgres.so" ] &&
  put "$build/lamina_postgres.so" "$tree/lib/lamina/lamina_postgres.so"
"$tree/bin/lamina" --manual "$tree"
cp "$root/LICENSE" "$root/CHANGELOG.md" "$tree/share/doc/lamina/"
python3 "$root/packaging/notices.py" "$build" "$tree/share/doc/lamina"

# What is promised is checked where it is made.
if readelf -lW "$tree/bin/lamina" | grep -q INTERP; then
  echo "bin/lamina asks for a loader" >&2
  exit 1
fi
needed=$(objdump -T "$tree/lib/lamina/lamina-mpi" |
  grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -1)
if [ "$(printf '%s\nGLIBC_%s\n' "$needed" $newest_libc | sort -V | tail -1)" \
  != "GLIBC_$newest_libc" ]; then
  echo "lib/lamina/lamina-mpi asks for $needed" >&2
  exit 1
fi
size=$(stat -c %s "$tree/bin/lamina")
for page in trace ranks graph; do
  [ -s "$build/generated/${page}_page.html" ] || {
    echo "the report page is not in this build: no node, or no packages" >&2
    exit 1
  }
done

epoch=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)
pack() { # folder name
  tar -C "$1" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
    --mode=u+rwX,go=rX -cf - "$2" | xz -6 -T1 > "$out/$3"
}
pack "$stage" "$name" "$name.tar.xz"
mv "$stage/debug" "$stage/$name-debug"
pack "$stage" "$name-debug" "$name-debug.tar.xz"
(cd "$out" && sha256sum "$name.tar.xz" "$name-debug.tar.xz" |
  tee "$name.sha256")
echo "bin/lamina $size bytes, no loader; lib/lamina/lamina-mpi: $needed"
