#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: check.sh ROOTS dist ARCHIVE | deb FOLDER | wheel FILE     (as root)
#
# Uses what is shipped as somebody does who has nothing else: in a copy of a bare
# root of Debian 12 (debootstrap, variant minbase), which is made once in the
# folder ROOTS with the package sources and certificates of this machine.
# RELEASE=bullseye takes an older one. Every step says what it did; the last line
# is "ok KIND" or the script ends with status 1.
set -euo pipefail
[ $# = 3 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
roots=$(mkdir -p "$1" && cd "$1" && pwd)
kind=$2
given=$(realpath "$3")
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=$roots/${RELEASE:-bookworm}
root=$roots/check
version=$(sed -n 's/^project(lamina VERSION \([0-9.]*\).*/\1/p' \
  "$project/CMakeLists.txt")

fail() { echo "FAIL $kind: $*" >&2; exit 1; }
say() { echo "  $*"; }

leave() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}

make_base() {
  [ -e "$base/made" ] && return
  local uri
  uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
    sort -u | head -1)
  rm -rf "$base"
  debootstrap --variant=minbase --include=ca-certificates \
    "${RELEASE:-bookworm}" "$base" "$uri" > "$base.log" 2>&1 ||
    { tail -5 "$base.log" >&2; fail "debootstrap"; }
  rm -f "$base/etc/apt/sources.list"
  cp -r /etc/apt/sources.list.d "$base/etc/apt/"
  [ ! -e /etc/apt/sources.list ] || cp /etc/apt/sources.list "$base/etc/apt/"
  cp /etc/resolv.conf /etc/hosts "$base/etc/"
  cp -r /etc/ssl/certs/. "$base/etc/ssl/certs/"
  cp -r /usr/local/share/ca-certificates/. \
    "$base/usr/local/share/ca-certificates/"
  touch "$base/made"
}

in_root() { # command of bash
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 LAMINA_CACHE=off \
    DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -euo pipefail -c "$1"
}

get() { # package...
  in_root "apt-get update -qq; apt-get install -y -qq \
    --no-install-recommends $* >/dev/null 2>&1" || fail "apt-get install $*"
}

# What a user does first with a program.
use_program() { # command
  [[ $(in_root "$1 --version") == "lamina $version (commit "* ]] ||
    fail "--version"
  in_root "$1 report /samples/train_step.json.gz" > "$roots/report.txt"
  grep -q '^The GPU is busy' "$roots/report.txt" || fail "report"
  say "$1 report: $(head -1 "$roots/report.txt")"
  in_root "cd /tmp; $1 report /samples/train_step.json.gz --format html \
    -o page.html >/dev/null; test -s page.html"
  [ "$(in_root "$1 query /samples/train_step.json.gz \
    'SELECT count(*) FROM kernel' --format csv" | tail -1)" = 212 ] ||
    fail "query"
  in_root "$1 layers /samples/graphs/replay.json.gz" > "$roots/layers.txt"
  grep -q '^48 layers in 12 passes' "$roots/layers.txt" || fail "layers"
  [[ $(in_root "$1 help layers") == NAME* ]] || fail "help"
  local status=0
  in_root "$1 report /nowhere.json" 2>/dev/null || status=$?
  [ $status = 3 ] || fail "exit status $status without input"
  say "page, query, layers, help and exit status are as they should be"
}

check_dist() {
  mkdir "$root/opt/lamina"
  tar -C "$root/opt/lamina" --strip-components=1 -xf "$given"
  use_program /opt/lamina/bin/lamina
  for file in doc/lamina/NOTICE doc/lamina/sbom.cdx.json man/man1/lamina.1 \
    bash-completion/completions/lamina zsh/site-functions/_lamina; do
    [ -s "$root/opt/lamina/share/$file" ] || fail "no share/$file"
  done
  # Nothing at all beside the program: no shell, no libc, no /proc.
  local empty=$root/empty
  mkdir -p "$empty/tmp"
  cp "$root/opt/lamina/bin/lamina" "$project/samples/train_step.json.gz" \
    "$empty/"
  chroot "$empty" /lamina report /train_step.json.gz --no-cache \
    > "$roots/empty.txt" 2>"$roots/empty.err" || fail "in an empty root"
  cmp "$roots/report.txt" "$roots/empty.txt"
  [ ! -s "$roots/empty.err" ] || fail "$(cat "$roots/empty.err")"
  say "the same bytes in a root with nothing but the program and the trace"
}

check_deb() {
  mkdir "$root/debs"
  cp "$given"/*.deb "$root/debs/"
  rm -f "$root"/debs/*-dbgsym_*.deb
  in_root "find / -xdev -type f -o -type l | sort > /tmp/before"
  get /debs/lamina_*.deb
  say "installed: $(in_root "dpkg-query -W -f '\${Package} \${Version} \
\${Installed-Size} kB' lamina"), with $(in_root "zgrep -hc '^Package:' \
    /var/lib/dpkg/status") packages in all"
  use_program lamina
  in_root "test -s /usr/share/man/man1/lamina-report.1.gz || \
    grep -q '^path-exclude=/usr/share/man' -r /etc/dpkg"
  in_root "test -s /usr/share/bash-completion/completions/lamina"
  get /debs/liblamina0_*.deb /debs/liblamina-dev_*.deb \
    /debs/python3-lamina_*.deb python3-numpy g++ pkg-config
  in_root "cd /tmp; cc -c /outside/arrow.c \$(pkg-config --cflags lamina | \
    sed 's/-std=[^ ]*//'); c++ /outside/outside.cc arrow.o \
    \$(pkg-config --cflags --libs lamina) -o outside; \
    ./outside /samples/train_step.json.gz" | grep -E "^$version [0-9]+ kernels, [0-9]+ ns" ||
    fail "a program against liblamina-dev"
  use_module python3
  in_root "apt-get purge -y -qq lamina liblamina0 liblamina-dev \
    python3-lamina >/dev/null 2>&1" || fail "purge"
  [ -z "$(in_root "find /usr /etc /var/lib/dpkg/info -iname '*lamina*'")" ] ||
    fail "purge leaves files"
  ! in_root "command -v lamina" || fail "purge leaves the program"
  say "purged: nothing of it is left"
}

use_module() { # python
  in_root "$1 - <<'PYTHON'
import lamina
assert lamina.__version__ == '$version', lamina.__version__
t = lamina.open('/samples/train_step.json.gz')
print('  python:', t.report().verdict)
assert len(t.kernels) > 0 and t.ops['kernel_time_ns'].sum() > 0
assert t.query('SELECT count(*) AS n FROM kernel')['n'][0] == 212
PYTHON" || fail "the module"
}

check_wheel() {
  get python3 python3-venv
  cp "$given" "$root/tmp/"
  in_root "python3 -m venv --system-site-packages /venv; \
    /venv/bin/pip install --no-index --no-deps -q /tmp/$(basename "$given"); \
    /venv/bin/pip check; /venv/bin/pip show lamina" | sed -n "1,2p"
  in_root "cd /tmp; /venv/bin/python -c 'import lamina; \
    print(\"  \" + lamina.open(\"/samples/train_step.json.gz\").report().verdict)'" ||
    fail "the module without numpy"
  get python3-numpy
  use_module /venv/bin/python
  in_root "/venv/bin/pip uninstall -y -q lamina; \
    ! /venv/bin/python -c 'import lamina' 2>/dev/null" || fail "uninstall"
  say "installed by pip, used with and without numpy, uninstalled"
}

make_base
leave
trap leave EXIT
cp -a "$base" "$root"
cp -r "$project/samples" "$root/samples"
cp -r "$project/tests/install" "$root/outside"
mount -t proc proc "$root/proc"
for name in null zero urandom; do
  [ -e "$root/dev/$name" ] || cp -a "/dev/$name" "$root/dev/"
done
echo "$kind $(basename "$given") in a bare $(cat "$root/etc/debian_version")"
case $kind in
dist) check_dist ;;
deb) check_deb ;;
wheel) check_wheel ;;
*) fail "unknown kind" ;;
esac
echo "ok $kind"
