# SPDX-License-Identifier: BSD-2-Clause
# libibverbs.so.1 from the objects of the archive, and libverbatim_gate.so (abi/dropin).

include_guard(GLOBAL)
include(GNUInstallDirs)

get_property(rooms GLOBAL PROPERTY VERBATIM_ROOMS_OF_verbatim)
get_property(more_rooms GLOBAL PROPERTY VERBATIM_ROOMS_OF_verbatim_dropin)
get_property(objects GLOBAL PROPERTY VERBATIM_OBJECTS)
add_library(verbatim_dropin SHARED ${objects})
foreach(room IN LISTS rooms more_rooms)
  target_sources(verbatim_dropin PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
if(objects)
  add_dependencies(verbatim_dropin verbatim_hwloc)
endif()
set(map ${Verbatim_BINARY_DIR}/abi/dropin/libibverbs.map)
set_target_properties(verbatim_dropin PROPERTIES
  OUTPUT_NAME ibverbs SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${Verbatim_BINARY_DIR}/dropin
  LINKER_LANGUAGE C LINK_DEPENDS ${map})
target_link_libraries(verbatim_dropin PRIVATE Threads::Threads)
target_link_options(verbatim_dropin PRIVATE
  -Wl,--version-script=${map} -Wl,--as-needed -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now
  # Calls among ourselves stay here: else another libibverbs of the process would get them.
  -Wl,-Bsymbolic-functions
  # A thread of ours may run when a plugin that pulled us in is closed.
  -Wl,-z,nodelete)

get_property(gate_rooms GLOBAL PROPERTY VERBATIM_ROOMS_OF_verbatim_gate)
add_library(verbatim_gate SHARED $<TARGET_OBJECTS:vbt_base>)
foreach(room IN LISTS gate_rooms)
  target_sources(verbatim_gate PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
set_target_properties(verbatim_gate PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${Verbatim_BINARY_DIR}/dropin LINKER_LANGUAGE C)
target_link_libraries(verbatim_gate PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(verbatim_gate PRIVATE -Wl,--as-needed -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now)

if(VERBATIM_INSTALL)
  # Apart: whoever wants it says so, and rdma-core's library is nowhere replaced.
  install(TARGETS verbatim_dropin verbatim_gate LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbatim/dropin COMPONENT dropin)
endif()
