#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: deb.sh FOLDER
#
# Makes the Debian packages of the commit that is checked out in FOLDER, from its
# files alone: the tree is copied to FOLDER/source, packaging/debian with it, and
# the changelog of the packages is written from the version (CMakeLists.txt) and
# the time of the commit, which is SOURCE_DATE_EPOCH too. The same commit gives
# the same bytes, in whichever folder. Exit status 1 when lintian has an error.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

[ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] ||
  echo "the packages are those of the last commit, without later changes" >&2
version=$(sed -n 's/^project(lamina VERSION \([0-9.]*\).*/\1/p' \
  "$root/CMakeLists.txt")
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
LAMINA_COMMIT=$(git -C "$root" rev-parse --short=12 HEAD)
# debhelper gives a build a home of its own: npm needs the settings of this one.
NPM_CONFIG_USERCONFIG=$(npm config get userconfig 2>/dev/null || true)
export SOURCE_DATE_EPOCH LAMINA_COMMIT NPM_CONFIG_USERCONFIG
export DEB_BUILD_OPTIONS="parallel=${LAMINA_JOBS:-$(nproc)} ${DEB_BUILD_OPTIONS:-}"

rm -rf "$folder"
mkdir -p "$folder/source"
git -C "$root" archive HEAD | tar -C "$folder/source" -x
cp -r "$root/packaging/debian" "$folder/source/debian"
cat > "$folder/source/debian/changelog" <<TEXT
lamina ($version) unstable; urgency=medium

  * Release $version; CHANGELOG.md says what is new.

 -- $(sed -n 's/^Maintainer: //p' "$root/packaging/debian/control")  $(
  LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
(cd "$folder/source" && dpkg-buildpackage -b -us -uc) \
  > "$folder/build.log" 2>&1 || {
  tail -40 "$folder/build.log" >&2
  exit 1
}
(cd "$folder" && sha256sum -- *.deb | tee SHA256SUMS)
lintian --allow-root --fail-on error "$folder"/*.changes |
  tee "$folder/lintian.log"
