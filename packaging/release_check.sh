#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: release_check.sh [--tests]
#
# Everything that a release must hold, made from the commit that is checked out
# and used in bare roots. As root, for debootstrap. Ends with "release VERSION is
# fine" or with status 1 at the first thing that is not.
#   --tests   all tests too (half an hour)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
step() { printf '\033[1m%s\033[0m\n' "$*"; }
fail() { echo "not fit for a release: $*" >&2; exit 1; }

step "version, changelog, tree"
version=$(sed -n 's/^project(lamina VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "CMakeLists.txt has no version"
grep -q "^## $version\b" CHANGELOG.md ||
  fail "CHANGELOG.md has no \"## $version\""
[ -z "$(git status --porcelain)" ] || fail "there are changes without a commit"
# The version stands in CMakeLists.txt alone; tests hold what is printed.
others=$(git grep -lF "VERSION $version" -- '*.cmake' '*CMakeLists.txt' \
  packaging src python | grep -v '^CMakeLists.txt$' || true)
[ -z "$others" ] || fail "$others have the version, too"
# What npm bundles into the page is named in the packages.
python3 - <<'PYTHON' || fail "packaging/debian/copyright lacks a bundled work"
import json, sys
names = [p.split("node_modules/")[-1] for p, e in
         json.load(open("web/package-lock.json"))["packages"].items()
         if p and not e.get("dev")]
text = open("packaging/debian/copyright").read()
sys.exit(any(name not in text for name in names))
PYTHON

step "format, layers, documents"
./dev lint --fast
./dev build
python3 tests/checks/docs_test.py build/release/lamina
python3 tests/checks/manual_test.py build/release/lamina
[ "${1:-}" != --tests ] || ./dev test

step "one archive, a wheel, Debian packages"
./dev dist
size=$(tar -tvf "build/dist/lamina-$version-linux-$(uname -m).tar.xz" |
  awk '/bin\/lamina$/ { print $3 }')
[ "$size" -le 15000000 ] || fail "bin/lamina has $size bytes, more than 15 MB"
./dev wheel
./dev deb
command -v debootstrap >/dev/null ||
  apt-get install -y -qq --no-install-recommends debootstrap >/dev/null

step "used in bare roots"
roots=$(mktemp -d)
trap 'rm -rf --one-file-system "$roots"' EXIT
packaging/check.sh "$roots" dist \
  "build/dist/lamina-$version-linux-$(uname -m).tar.xz"
packaging/check.sh "$roots" wheel "$(ls build/dist/lamina-"$version"-*.whl)"
packaging/check.sh "$roots" deb build/deb
echo "release $version is fine"
