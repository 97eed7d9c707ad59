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

# One set of objects serves the program, the archives and shared libraries.
# What is not marked public stays inside, so calls need no indirection.
add_compile_options(-fPIC)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# What nearly every file includes is parsed once: two thirds of the time of a
# small file were spent in it. The presets with sanitizers go without, so that
# an #include that is missing is found.
file(CONFIGURE OUTPUT ${LAMINA_GENERATED}/common_headers.cc CONTENT "")
add_library(lamina_common_headers OBJECT ${LAMINA_GENERATED}/common_headers.cc)
target_link_libraries(lamina_common_headers PRIVATE lamina_flags)
target_precompile_headers(lamina_common_headers PRIVATE
  <algorithm> <array> <cmath> <cstddef> <cstdint> <cstring> <functional>
  <map> <memory> <optional> <set> <span> <string> <string_view> <tuple>
  <utility> <vector>
  <absl/container/flat_hash_map.h> <fmt/format.h> <tl/expected.hpp>)
# The same for the folders that look at a trace as the analyses do, with what
# that brings: a sixth of their time was the view of a trace, file by file. A
# portable program has these folders in two levels of optimization, and does
# without.
set(LAMINA_ANALYSIS_FOLDERS analysis cli compare compat/tracelens dist engine
  findings page sql)
if(NOT LAMINA_STATIC_LIBRARIES)
  add_library(lamina_analysis_headers OBJECT
    ${LAMINA_GENERATED}/common_headers.cc)
  target_link_libraries(lamina_analysis_headers PRIVATE lamina_flags)
  get_target_property(headers lamina_common_headers PRECOMPILE_HEADERS)
  target_precompile_headers(lamina_analysis_headers PRIVATE ${headers}
    ${CMAKE_SOURCE_DIR}/src/analysis/common/context.h
    ${CMAKE_SOURCE_DIR}/include/lamina/result.h)
endif()
# The same for tests. They are not optimized: what they test is, and a file
# takes 3/5 of the time.
set(LAMINA_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
add_library(lamina_test_headers OBJECT ${LAMINA_GENERATED}/common_headers.cc)
target_compile_options(lamina_test_headers PRIVATE ${LAMINA_TEST_OPTIONS})
target_link_libraries(lamina_test_headers PRIVATE lamina_flags GTest::gmock)
target_precompile_headers(lamina_test_headers PRIVATE
  <algorithm> <array> <cstdint> <map> <memory> <optional> <random> <span>
  <string> <string_view> <tuple> <utility> <vector>
  <absl/container/flat_hash_map.h> <fmt/format.h> <gtest/gtest.h>
  <gmock/gmock.h>)

# Folders of src/ whose code runs per event, record or row: for speed. All else
# runs once per command, file, rule or table, and is compiled for size where a
# portable program is made: 3/5 of the bytes (docs/install.md has what it gains
# and costs). So are some files of those folders.
set(LAMINA_FAST_FOLDERS base table result trace ingest snapshot tree sql memory
  emit analysis/common analysis/host analysis/kernels analysis/path)
set(LAMINA_SMALL_FILES
  "base/(document|files_below|zip)" "ingest/ingest" "ingest/common/database"
  "ingest/xplane/(hlo|programs|xplane)" "ingest/nsys/(nsys|export_facts)"
  "ingest/(kineto/kineto|rpd/rpd|rocprof_csv/rocprof_csv|rocpd/run_tables)"
  "snapshot/cache" "sql/(database|export|result_tables|source)"
  "memory/(diff|questions|schemas|.*tables)" "emit/chrome/(filter|merge)"
  "emit/perfetto/(lanes|packets)"
  "analysis/host/(.*counters|sequences|.*tables|ranges|transfers)"
  "analysis/path/(joined|spec|.*tables)")
if(LAMINA_STATIC_LIBRARIES)
  add_library(lamina_small_headers OBJECT ${LAMINA_GENERATED}/common_headers.cc)
  target_compile_options(lamina_small_headers PRIVATE -Os)
  target_link_libraries(lamina_small_headers PRIVATE lamina_flags)
  get_target_property(headers lamina_common_headers PRECOMPILE_HEADERS)
  target_precompile_headers(lamina_small_headers PRIVATE ${headers})
endif()

# How the sources of a folder of src/ are compiled.
function(lamina_compile target)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
    BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src OUTPUT_VARIABLE folder)
  list(JOIN LAMINA_FAST_FOLDERS "|" fast)
  list(JOIN LAMINA_ANALYSIS_FOLDERS "|" analysis)
  if(folder MATCHES "^(${analysis})(/|$)" AND TARGET lamina_analysis_headers
      AND NOT folder STREQUAL analysis/common)
    target_precompile_headers(${target} REUSE_FROM lamina_analysis_headers)
  elseif(folder MATCHES "^(${fast})(/|$)" OR NOT TARGET lamina_small_headers)
    target_precompile_headers(${target} REUSE_FROM lamina_common_headers)
    if(TARGET lamina_small_headers)
      set(small "")
      get_target_property(sources ${target} SOURCES)
      foreach(pattern ${LAMINA_SMALL_FILES})
        set(some ${sources})
        list(FILTER some INCLUDE REGEX "/${pattern}[.]cc$")
        list(APPEND small ${some})
      endforeach()
      # A precompiled header is of one level of optimization.
      set_source_files_properties(${small} PROPERTIES COMPILE_OPTIONS -Os
        SKIP_PRECOMPILE_HEADERS ON)
    endif()
  else()
    target_compile_options(${target} PRIVATE -Os)
    target_precompile_headers(${target} REUSE_FROM lamina_small_headers)
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
