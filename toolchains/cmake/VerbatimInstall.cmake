# SPDX-License-Identifier: BSD-2-Clause
# What `cmake --install` puts on a machine: the public headers, the archive, and how CMake and pkg-config find them.

include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Verbatim)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(templates ${Verbatim_SOURCE_DIR}/toolchains/package)

target_link_libraries(verbatim_verbs INTERFACE
  $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}verbatim${CMAKE_STATIC_LIBRARY_SUFFIX}>)
install(TARGETS verbatim ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS verbatim_verbs EXPORT VerbatimTargets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT VerbatimTargets NAMESPACE Verbatim:: DESTINATION ${cmake_dir})

# The notice of whoever else's work is in the archive goes with it.
install(FILES ${Verbatim_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET verbatim_hwloc)
  install(FILES ${Verbatim_SOURCE_DIR}/runtime/topo/LICENSE.hwloc DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()

configure_package_config_file(${templates}/VerbatimConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/VerbatimConfig.cmake INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/VerbatimConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/VerbatimConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/VerbatimConfigVersion.cmake
  DESTINATION ${cmake_dir})

# The way up from a .pc file to the prefix: "../.." for lib/pkgconfig, one more for lib/<triplet>/pkgconfig.
function(way_up folder result)
  file(RELATIVE_PATH up ${CMAKE_INSTALL_PREFIX}/${folder} ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" up "${up}")
  set(${result} ${up} PARENT_SCOPE)
endfunction()
way_up(${pc_dir} prefix_from_pc)
configure_file(${templates}/verbatim.pc.in ${CMAKE_CURRENT_BINARY_DIR}/verbatim.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/verbatim.pc DESTINATION ${pc_dir})

# The names by which build systems look for libibverbs, in a folder that none of them searches unless its user says so: an
# installation beside rdma-core's hides nothing of it. The version is that of the API: every name up to it is in the headers.
set(compat_dir ${CMAKE_INSTALL_LIBDIR}/verbatim/compat)
set(libibverbs_version 1.18.65.0)
way_up(${compat_dir} prefix_from_compat)
configure_file(${templates}/libibverbs.pc.in ${CMAKE_CURRENT_BINARY_DIR}/compat/libibverbs.pc @ONLY)
file(RELATIVE_PATH archive_from_compat ${CMAKE_INSTALL_PREFIX}/${compat_dir}
  ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}verbatim${CMAKE_STATIC_LIBRARY_SUFFIX})
file(CREATE_LINK ${archive_from_compat} ${CMAKE_CURRENT_BINARY_DIR}/compat/libibverbs.a SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/compat/libibverbs.pc ${CMAKE_CURRENT_BINARY_DIR}/compat/libibverbs.a
  DESTINATION ${compat_dir})
