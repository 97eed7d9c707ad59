# SPDX-License-Identifier: Apache-2.0
#
# How lamina's targets are declared. One folder is one static library with
# declared dependencies; tools/check_layers.py holds the #include lines against
# those declarations.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(LAMINA_GENERATED ${CMAKE_BINARY_DIR}/generated)

add_library(lamina_flags INTERFACE)
target_compile_options(lamina_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -Werror
  # GCC 12 warns about std::string in optimised code where nothing is wrong
  # (GCC bugs 105329, 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-array-bounds
  -Wno-stringop-overread -Wno-stringop-overflow>)
target_compile_definitions(lamina_flags INTERFACE
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
target_include_directories(lamina_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${LAMINA_GENERATED})

# GCC collects garbage by default from 100 MB on, beside a precompiled header
# in each file and several times: 1/6 of the time of a build. The machine code
# is the same.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:SHELL:\
--param ggc-min-heapsize=2097152 --param ggc-min-expand=200>")

# One set of objects serves the program, the archives and shared libraries.
# What is not marked public stays inside, so calls need no indirection.
add_compile_options(-fPIC)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# What nearly every file includes of the standard library and of third parties
# is parsed once. No header of this project: each change of one would compile
# everything anew. `./dev lint` goes without, so that an #include that is
# missing is found. A precompiled header is of one level of
# optimization, so there is one for each.
file(CONFIGURE OUTPUT ${LAMINA_GENERATED}/common_headers.cc CONTENT "")
set(LAMINA_COMMON_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstddef> <cstdint>
  <cstring> <deque> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <string> <string_view> <tuple> <type_traits>
  <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/functional/function_ref.h> <fmt/format.h> <tl/expected.hpp>)
function(lamina_headers name)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;LIBS" ${ARGN})
  add_library(${name} OBJECT ${LAMINA_GENERATED}/common_headers.cc)
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE lamina_flags ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${LAMINA_COMMON_HEADERS}
    ${ARG_HEADERS})
endfunction()
lamina_headers(lamina_fast_headers)
# What runs once per command, file, rule or table: a fifth less to compile, and
# half the bytes.
set(LAMINA_SMALL_OPTIONS $<$<CONFIG:Release>:-Os>)
lamina_headers(lamina_small_headers OPTIONS ${LAMINA_SMALL_OPTIONS})
# Tests are not optimized: what they test is.
set(LAMINA_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
lamina_headers(lamina_test_headers OPTIONS ${LAMINA_TEST_OPTIONS}
  HEADERS <random> <gtest/gtest.h> <gmock/gmock.h> LIBS GTest::gmock)

# Folders of src/ whose code runs per event, record or row: for speed. All else
# is compiled for size (docs/install.md has what a portable program gains and
# costs).
set(LAMINA_FAST_FOLDERS base table result trace ingest snapshot tree sql memory
  emit analysis/common analysis/host analysis/kernels analysis/path)
# Files of those folders that a portable program compiles for size as well.
set(LAMINA_SMALL_FILES
  "base/(document|opened|zip)" "ingest/ingest" "ingest/common/database"
  "ingest/xplane/(hlo|xplane)" "ingest/nsys/(nsys|export_facts)"
  "ingest/kineto/kineto"
  "snapshot/cache" "sql/(database|export|result_tables|source)"
  "memory/(diff|questions|schemas|.*tables)" "emit/chrome/(filter|merge)"
  "emit/perfetto/packets"
  "analysis/host/(.*counters|sequences|.*tables|ranges|transfers)"
  "analysis/path/(joined|spec|.*tables)")

# Several files of a target are compiled as one unit: most of the time of a
# file goes into headers and templates, which they share. A name in an unnamed
# namespace is therefore unique in its folder. `./dev lint` looks at each file
# alone, and so finds what a file has only from its neighbours.
option(LAMINA_UNITY "Compile several files of a folder as one unit" ON)
set(LAMINA_UNITY_FILES 8)
function(lamina_unity target)
  if(LAMINA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON
      UNITY_BUILD_BATCH_SIZE ${LAMINA_UNITY_FILES})
    # A member of an unnamed type is fine in a .cc file, but the one that GCC
    # sees is the unit.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# How the sources of a folder of src/ are compiled.
function(lamina_compile target)
  lamina_unity(${target})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
    BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src OUTPUT_VARIABLE folder)
  list(JOIN LAMINA_FAST_FOLDERS "|" fast)
  if(NOT folder MATCHES "^(${fast})(/|$)")
    target_compile_options(${target} PRIVATE ${LAMINA_SMALL_OPTIONS})
    target_precompile_headers(${target} REUSE_FROM lamina_small_headers)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM lamina_fast_headers)
  if(LAMINA_STATIC_LIBRARIES)
    set(small "")
    get_target_property(sources ${target} SOURCES)
    foreach(pattern ${LAMINA_SMALL_FILES})
      set(some ${sources})
      list(FILTER some INCLUDE REGEX "/${pattern}[.]cc$")
      list(APPEND small ${some})
    endforeach()
    set_source_files_properties(${small} PROPERTIES COMPILE_OPTIONS -Os
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# A library of Debian that ships no CMake package, as the target lib::NAME.
function(lamina_system_library name)
  cmake_parse_arguments(ARG "" "HEADER;LIBRARY" "" ${ARGN})
  find_path(LAMINA_${name}_INCLUDE ${ARG_HEADER} REQUIRED)
  add_library(lib_${name} INTERFACE)
  target_include_directories(lib_${name} SYSTEM INTERFACE
    ${LAMINA_${name}_INCLUDE})
  if(ARG_LIBRARY)
    find_library(LAMINA_${name}_LIBRARY ${ARG_LIBRARY} REQUIRED)
    lamina_library_path(${LAMINA_${name}_LIBRARY} path)
    target_link_libraries(lib_${name} INTERFACE ${path})
  endif()
  add_library(lib::${name} ALIAS lib_${name})
endfunction()

# lamina_library(NAME DEPS other folders... LIBS third party...
#                TEST_LIBS what only its tests need... EXCLUDE files...
#                API public headers of include/ that it implements...)
#
# Builds every *.cc of the current folder (and of those sub-folders that have
# no CMakeLists.txt) into lamina_NAME, and every *_test.cc into NAME_test.
function(lamina_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;EXCLUDE;TEST_LIBS;API" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  file(GLOB_RECURSE lists CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list ${lists})
    get_filename_component(folder ${list} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND lamina_)
  if(sources)
    add_library(lamina_${name} STATIC ${sources})
    lamina_compile(lamina_${name})
    target_link_libraries(lamina_${name}
      PUBLIC lamina_flags ${ARG_DEPS} ${ARG_LIBS})
  else()
    add_library(lamina_${name} INTERFACE)
    target_link_libraries(lamina_${name}
      INTERFACE lamina_flags ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(tests)
    lamina_test(${name}_test SOURCES ${tests}
      DEPS lamina_${name} ${ARG_TEST_LIBS})
  endif()
endfunction()

# A GoogleTest program; each of its cases is a test of its own in CTest.
function(lamina_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  lamina_unity(${name})
  target_compile_options(${name} PRIVATE ${LAMINA_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM lamina_test_headers)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main
    GTest::gmock)
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300)
endfunction()

# lamina_registry(FILE MACRO folders...): writes a list with one
# MACRO(folder) line per sub-folder of the current folder, so that a new
# format or analysis is a new folder and nothing else.
function(lamina_registry file macro)
  set(text "")
  foreach(folder ${ARGN})
    string(APPEND text "${macro}(${folder})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${LAMINA_GENERATED}/${file} CONTENT "${text}")
endfunction()

# The sub-folders of the current folder that hold a CMakeLists.txt, sorted.
function(lamina_subfolders out)
  file(GLOB lists RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  set(folders "")
  foreach(list ${lists})
    get_filename_component(folder ${list} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
  list(SORT folders)
  set(${out} ${folders} PARENT_SCOPE)
endfunction()
