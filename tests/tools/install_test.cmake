# SPDX-License-Identifier: BSD-2-Clause
# Installs the tool under PREFIX and DESTDIR and looks at what came: cmake -DBUILD=... -DPREFIX=... -P
file(REMOVE_RECURSE ${PREFIX})
foreach(destdir "" ${PREFIX}/staging)
  set(ENV{DESTDIR} "${destdir}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}/usr --component tools
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  set(bin ${PREFIX}/usr/bin)
  if(destdir)
    set(bin ${destdir}${bin})
  endif()
  foreach(name ibv_devices ibv_devinfo ibv_asyncwatch
      ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong
      ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw)
    if(NOT IS_SYMLINK ${bin}/${name})
      message(FATAL_ERROR "${bin}/${name} is no link")
    endif()
    file(READ_SYMLINK ${bin}/${name} target)
    if(NOT target STREQUAL "verbatim")
      message(FATAL_ERROR "${name} leads to ${target}: it must stay good when the folder is moved")
    endif()
  endforeach()
  execute_process(COMMAND ${bin}/ibv_devinfo -l OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY)
  if(NOT list MATCHES "^[0-9]+ HCAs? found:\n\tshm0\n")
    message(FATAL_ERROR "the installed ibv_devinfo -l prints '${list}'")
  endif()
endforeach()
file(REMOVE_RECURSE ${PREFIX})
