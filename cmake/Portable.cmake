# SPDX-License-Identifier: Apache-2.0
#
# A program that starts where nothing is installed. With
# -DLAMINA_STATIC_LIBRARIES=FOLDER (made by packaging/static_libraries.sh) every
# library but libc is linked statically: what Debian ships as an archive from
# its place, the rest from FOLDER/lib. Objects are those of any other build, but
# for folders that are compiled for size (Lamina.cmake).

# The archive of a shared library, or an error.
function(lamina_archive_of path out)
  get_filename_component(file ${path} NAME)
  get_filename_component(folder ${path} DIRECTORY)
  string(REGEX REPLACE "\\.so.*$" ".a" archive ${file})
  foreach(place ${LAMINA_STATIC_LIBRARIES}/lib ${folder})
    if(EXISTS ${place}/${archive})
      set(${out} ${place}/${archive} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "no archive of ${path}; is a -dev package missing, or "
    "packaging/static_libraries.sh to be run again?")
endfunction()

# Imported libraries of this folder give their archives from now on.
function(lamina_link_archives)
  get_directory_property(targets DIRECTORY ${CMAKE_SOURCE_DIR}
    IMPORTED_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "SHARED_LIBRARY|UNKNOWN_LIBRARY")
      continue()
    endif()
    foreach(config "" _NONE _RELEASE _RELWITHDEBINFO _NOCONFIG)
      get_target_property(path ${target} IMPORTED_LOCATION${config})
      if(path MATCHES "\\.so")
        lamina_archive_of(${path} archive)
        set_target_properties(${target} PROPERTIES
          IMPORTED_LOCATION${config} ${archive})
      endif()
    endforeach()
  endforeach()
endfunction()

# Libraries found by path, as LIBRARY of lamina_system_library.
function(lamina_library_path path out)
  if(LAMINA_STATIC_LIBRARIES AND ${path} MATCHES "\\.so")
    lamina_archive_of(${path} path)
  endif()
  set(${out} ${path} PARENT_SCOPE)
endfunction()
