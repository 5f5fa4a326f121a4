# SPDX-License-Identifier: BSD-2-Clause
# libverbatim_pmpi.so (mpi_shim/pmpi): its functions are all that others see of it.

include_guard(GLOBAL)
include(GNUInstallDirs)

get_property(rooms GLOBAL PROPERTY VERBATIM_ROOMS_OF_verbatim_pmpi)
add_library(verbatim_pmpi SHARED)
foreach(room IN LISTS rooms)
  target_sources(verbatim_pmpi PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
set(map ${Verbatim_SOURCE_DIR}/mpi_shim/pmpi/libverbatim_pmpi.map)
set_target_properties(verbatim_pmpi PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${Verbatim_BINARY_DIR} LINKER_LANGUAGE C LINK_DEPENDS ${map})
add_dependencies(verbatim_pmpi verbatim_coll verbatim)
target_link_libraries(verbatim_pmpi PRIVATE
  $<TARGET_FILE:verbatim_coll> $<TARGET_FILE:verbatim> Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(verbatim_pmpi PRIVATE
  -Wl,--version-script=${map} -Wl,--as-needed -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now
  # A thread of ours may run when a plugin that pulled us in is closed.
  -Wl,-z,nodelete)

if(VERBATIM_INSTALL)
  install(TARGETS verbatim_pmpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
