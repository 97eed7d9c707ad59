#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: static_libraries.sh FOLDER
#
# Debian has no static form of five libraries that lamina links: fmt, simdjson,
# ISA-L, libxlsxwriter and libzip, and of four one that programs can link but the
# module of Python cannot (it is not position independent): abseil, re2, yaml-cpp
# and bzip2. This builds them into FOLDER/lib from Debian's own
# source packages, fetched and verified by apt, in the versions whose headers
# are installed. FOLDER/sources.txt says which they were.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
jobs=${LAMINA_JOBS:-$(nproc)}
mkdir -p "$folder/lib" "$folder/apt/lists/partial" "$folder/apt/parts" \
  "$folder/apt/cache/archives/partial" "$folder/src"

# Source package, package that has its headers, its static library.
libraries=(
  "fmtlib libfmt-dev libfmt.a"
  "simdjson libsimdjson-dev libsimdjson.a"
  "libisal libisal-dev libisal.a"
  "libxlsxwriter libxlsxwriter-dev libxlsxwriter.a"
  "libzip libzip-dev libzip.a"
  "abseil libabsl-dev libabsl_raw_hash_set.a"
  "re2 libre2-dev libre2.a"
  "yaml-cpp libyaml-cpp-dev libyaml-cpp.a"
  "bzip2 libbz2-dev libbz2.a"
)

# apt with lists of its own, which hold sources too; the machine's stay as
# they are.
private_apt() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null \
    -o Dir::Etc::SourceParts="$folder/apt/parts" \
    -o Dir::State::Lists="$folder/apt/lists" \
    -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root "$@"
}

add_sources() {
  [ -e "$folder/apt/ready" ] && return
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] && grep -q '/debian' "$file" &&
      sed 's/^Types:.*/Types: deb-src/' "$file" \
        > "$folder/apt/parts/$(basename "$file")"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] && grep '/debian' "$file" | sed -n 's/^deb /deb-src /p' \
      > "$folder/apt/parts/$(basename "$file" .list).list"
  done
  private_apt update >/dev/null
  touch "$folder/apt/ready"
}

build() { # name
  # For size what matches names, reads rule files, writes workbooks and opens archives.
  local level=-O2 type=Release
  case $1 in
  libxlsxwriter | libzip | re2 | yaml-cpp) level=-Os type=MinSizeRel ;;
  esac
  export CFLAGS="$level -ffunction-sections -fdata-sections"
  export CXXFLAGS=$CFLAGS
  case $1 in
  fmtlib)
    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=Release -DFMT_TEST=OFF \
      -DFMT_DOC=OFF -DBUILD_SHARED_LIBS=OFF \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    cmake --build out -j "$jobs" --target fmt
    cp out/libfmt.a "$folder/lib/"
    ;;
  simdjson)
    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DBUILD_SHARED_LIBS=OFF -DSIMDJSON_DEVELOPER_MODE=OFF \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    cmake --build out -j "$jobs" --target simdjson
    cp out/libsimdjson.a "$folder/lib/"
    ;;
  libisal)
    autoreconf -fi
    ./configure --disable-shared --enable-static --with-pic
    make -j "$jobs" libisal.la
    cp .libs/libisal.a "$folder/lib/"
    ;;
  libxlsxwriter)
    # With the packer that its source brings along: no further library.
    CFLAGS="$CFLAGS -fPIC" make -j "$jobs" -C third_party/minizip ioapi.o zip.o
    CFLAGS="$CFLAGS -fPIC" make -j "$jobs" -C third_party/tmpfileplus \
      tmpfileplus.o
    CFLAGS="$CFLAGS -fPIC" make -j "$jobs" -C third_party/md5 md5.o
    for file in src/*.c; do
      echo "cc $CFLAGS -fPIC -Iinclude -Ithird_party -c $file -o ${file%.c}.o"
    done | xargs -P "$jobs" -I{} sh -c '{}'
    rm -f "$folder/lib/libxlsxwriter.a"
    ar rcs "$folder/lib/libxlsxwriter.a" src/*.o third_party/*/*.o
    ;;
  libzip)
    # Deflate and bzip2, as Debian's; no encryption, which needs a password that
    # lamina does not ask for.
    local off=(-DENABLE_LZMA=OFF)
    for part in COMMONCRYPTO GNUTLS MBEDTLS OPENSSL WINDOWS_CRYPTO; do
      off+=("-DENABLE_$part=OFF")
    done
    for part in TOOLS REGRESS EXAMPLES DOC; do off+=("-DBUILD_$part=OFF"); done
    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=$type "${off[@]}" \
      -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    grep -q "define HAVE_LIBBZ2" out/config.h
    cmake --build out -j "$jobs" --target zip
    cp out/lib/libzip.a "$folder/lib/"
    ;;
  abseil)
    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_STANDARD=17 -DBUILD_SHARED_LIBS=OFF \
      -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    cmake --build out -j "$jobs" --target raw_hash_set
    find out -name 'libabsl_*.a' -exec cp {} "$folder/lib/" \;
    ;;
  re2)
    # Its tables are made from the package unicode-data.
    make -j "$jobs" CXXFLAGS="$CXXFLAGS -std=c++11 -fPIC -pthread" \
      REBUILD_TABLES=1 obj/libre2.a
    cp obj/libre2.a "$folder/lib/"
    ;;
  yaml-cpp)
    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=$type \
      -DYAML_CPP_BUILD_TOOLS=OFF -DYAML_CPP_BUILD_TESTS=OFF \
      -DYAML_BUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    cmake --build out -j "$jobs" --target yaml-cpp
    cp out/libyaml-cpp.a "$folder/lib/"
    ;;
  bzip2)
    make CFLAGS="$CFLAGS -fPIC -D_FILE_OFFSET_BITS=64" libbz2.a
    cp libbz2.a "$folder/lib/"
    ;;
  esac
}

for entry in "${libraries[@]}"; do
  read -r source headers library <<<"$entry"
  version=$(dpkg-query -W -f='${source:Version}' "$headers")
  grep -qxF "$source $version" "$folder/sources.txt" 2>/dev/null &&
    [ -e "$folder/lib/$library" ] && continue
  add_sources
  rm -rf "$folder/src/$source"
  mkdir -p "$folder/src/$source"
  echo "building $library from $source $version" >&2
  # In the background, because "||" would switch -e off inside.
  (
    cd "$folder/src/$source"
    private_apt source "$source=$version" >/dev/null
    cd "$(find . -mindepth 1 -maxdepth 1 -type d)"
    build "$source"
  ) > "$folder/src/$source.log" 2>&1 &
  wait $! || {
    tail -20 "$folder/src/$source.log" >&2
    exit 1
  }
  echo "$source $version" >> "$folder/sources.txt"
done
