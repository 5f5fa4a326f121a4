# SPDX-License-Identifier: BSD-2-Clause
# MPI's part of `cmake --install`: its archive beside the other one, its headers in a folder of their own, so that an
# installation beside another MPI hides nothing of it.

include_guard(GLOBAL)
include(VerbatimInstall)

set(mpi_include_dir ${CMAKE_INSTALL_INCLUDEDIR}/verbatim-mpi)
get_property(mpi_include GLOBAL PROPERTY VERBATIM_MPI_INCLUDE)
foreach(folder IN LISTS mpi_include)
  install(DIRECTORY ${folder}/ DESTINATION ${mpi_include_dir} FILES_MATCHING PATTERN "*.h")
endforeach()

# Fortran's, which are made while the others are; its module is there if a gfortran was.
get_property(module GLOBAL PROPERTY VERBATIM_MPI_MODULE)
set(made ${Verbatim_BINARY_DIR}/mpi_shim/include)
install(FILES ${made}/mpif.h ${made}/mpi.f90 ${module} DESTINATION ${mpi_include_dir})

target_include_directories(verbatim_mpi_programs INTERFACE $<INSTALL_INTERFACE:${mpi_include_dir}>)
foreach(library verbatim_mpi verbatim)
  target_link_libraries(verbatim_mpi_programs INTERFACE
    $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}${library}${CMAKE_STATIC_LIBRARY_SUFFIX}>)
endforeach()
foreach(library verbatim_coll verbatim)
  target_link_libraries(verbatim_coll_programs INTERFACE
    $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}${library}${CMAKE_STATIC_LIBRARY_SUFFIX}>)
endforeach()
install(TARGETS verbatim_mpi verbatim_mpi_fortran verbatim_coll ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS verbatim_mpi_programs verbatim_coll_programs EXPORT VerbatimTargets)

configure_file(${templates}/verbatim-mpi.pc.in ${CMAKE_CURRENT_BINARY_DIR}/verbatim-mpi.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/verbatim-mpi.pc DESTINATION ${pc_dir})
