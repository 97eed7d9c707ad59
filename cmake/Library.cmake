# SPDX-License-Identifier: Apache-2.0
#
# liblamina for other programs: a shared library that shows its public headers
# and no more, an archive, and what CMake and pkg-config need to find them. All
# of it is made of the objects that the program is made of.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Raised when a program that was linked before would no longer work.
set(LAMINA_ABI 0)

# The archives of lamina and the names of other libraries that `target` links.
function(lamina_link_closure target out_archives out_names)
  set(archives "")
  set(names "")
  set(seen "")
  set(left ${target})
  while(left)
    list(POP_FRONT left item)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
    if(item STREQUAL "" OR item IN_LIST seen OR item MATCHES "\\$<")
      continue()
    endif()
    list(APPEND seen "${item}")
    if(TARGET "${item}")
      get_target_property(type ${item} TYPE)
      get_target_property(imported ${item} IMPORTED)
      if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
        list(APPEND archives ${item})
      elseif(imported AND NOT type STREQUAL "INTERFACE_LIBRARY")
        foreach(config _RELEASE _NONE _RELWITHDEBINFO _NOCONFIG "")
          get_target_property(path ${item} IMPORTED_LOCATION${config})
          if(path)
            list(APPEND left ${path})
            break()
          endif()
        endforeach()
      endif()
      get_target_property(libraries ${item} INTERFACE_LINK_LIBRARIES)
      if(libraries)
        list(APPEND left ${libraries})
      endif()
    elseif(item MATCHES "^/.*/lib([^/]*)\\.(so|a)[.0-9]*$")
      list(APPEND names ${CMAKE_MATCH_1})
    elseif(item MATCHES "^-l(.*)$")
      list(APPEND names ${CMAKE_MATCH_1})
    elseif(NOT item MATCHES "^-")
      list(APPEND names ${item})
    endif()
  endwhile()
  list(REMOVE_DUPLICATES names)
  set(${out_archives} ${archives} PARENT_SCOPE)
  set(${out_names} ${names} PARENT_SCOPE)
endfunction()

# The folders that implement public headers, whole; the rest as it is needed.
set(objects "")
foreach(name api engine result table base)
  list(APPEND objects $<TARGET_OBJECTS:lamina_${name}>)
endforeach()
add_library(lamina_shared SHARED ${objects})
set_target_properties(lamina_shared PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(lamina_shared PRIVATE lamina_api)
target_include_directories(lamina_shared INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(lamina_shared INTERFACE cxx_std_20)
set(exports ${CMAKE_SOURCE_DIR}/src/api/exports.map)
target_link_options(lamina_shared PRIVATE -Wl,--version-script=${exports}
  -Wl,--gc-sections -Wl,-z,defs
  $<$<CONFIG:Release>:-Wl,--strip-debug>)
set_target_properties(lamina_shared PROPERTIES
  OUTPUT_NAME lamina EXPORT_NAME lamina
  VERSION ${PROJECT_VERSION} SOVERSION ${LAMINA_ABI}
  LINK_DEPENDS ${exports}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# One archive of all of them, without line tables.
lamina_link_closure(lamina_api archives names)
set(archive ${CMAKE_BINARY_DIR}/lib/liblamina.a)
set(script "CREATE ${archive}.part\n")
set(files "")
foreach(name ${archives})
  string(APPEND script "ADDLIB $<TARGET_FILE:${name}>\n")
  list(APPEND files $<TARGET_FILE:${name}>)
endforeach()
file(GENERATE OUTPUT ${LAMINA_GENERATED}/archive.mri
  CONTENT "${script}SAVE\nEND\n")
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}.part
  COMMAND ${CMAKE_AR} -M < ${LAMINA_GENERATED}/archive.mri
  COMMAND ${CMAKE_OBJCOPY} --strip-debug ${archive}.part ${archive}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}.part
  DEPENDS ${archives} ${files} VERBATIM)
add_custom_target(lamina_archive ALL DEPENDS ${archive})

# What other projects read.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
set(LAMINA_PRIVATE_NAMES "${names}")
list(TRANSFORM names PREPEND "-l")
list(JOIN names " " LAMINA_PRIVATE_LIBS)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/laminaConfig.cmake.in
  ${LAMINA_GENERATED}/laminaConfig.cmake INSTALL_DESTINATION ${package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(
  ${LAMINA_GENERATED}/laminaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_SOURCE_DIR}/cmake/lamina.pc.in
  ${LAMINA_GENERATED}/lamina.pc @ONLY)

install(TARGETS lamina_shared EXPORT laminaTargets)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/lamina
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT laminaTargets NAMESPACE lamina:: DESTINATION ${package})
install(FILES ${LAMINA_GENERATED}/laminaConfig.cmake
  ${LAMINA_GENERATED}/laminaConfigVersion.cmake DESTINATION ${package})
install(FILES ${LAMINA_GENERATED}/lamina.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
