# SPDX-License-Identifier: BSD-2-Clause
# A room is one folder of the tree, built as an OBJECT library that sees only the folders it is allowed to see.
#
#   verbatim_room(vbt_verbs PATH runtime/verbs
#     SOURCES device.cpp context.cpp  HEADERS device.hpp context.hpp  SEES runtime/base runtime/sync abi/include)
#
# Includes are written from the repository root, yet the root is not an include directory: the build tree holds, per room, a
# farm of symbolic links with just the folders in SEES and the room's own, so that an include against the arrows does not
# compile. `abi/include` and `mpi_shim/include` are special: they are what users put on their include path, and so become
# include directories themselves. A room's objects go into the archive `verbatim`, or into the one that ARCHIVE names.
#
# With VERBATIM_JOIN_ROOMS eight files of a room are compiled as one, so names in their unnamed namespaces differ; those of
# files that have a reason to share one are ALONE.

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/VerbatimFlags.cmake)

# Every internal header that is compiled alone.
add_custom_target(headers)

function(_verbatim_farm out_dir out_includes target)
  set(farm ${Verbatim_BINARY_DIR}/rooms/${target})
  # Made anew at each configure: a folder that left SEES must not stay visible.
  file(REMOVE_RECURSE ${farm})
  file(MAKE_DIRECTORY ${farm})
  set(includes ${farm})
  set(linked)
  list(SORT ARGN)
  list(REMOVE_DUPLICATES ARGN)
  foreach(seen IN LISTS ARGN)
    if(seen STREQUAL "abi/include")
      list(APPEND includes ${Verbatim_SOURCE_DIR}/abi/include)
      continue()
    elseif(seen STREQUAL "mpi_shim/include")
      get_property(mpi GLOBAL PROPERTY VERBATIM_MPI_INCLUDE)
      list(APPEND includes ${mpi})
      continue()
    endif()
    # A folder below one already linked is visible through it; linking it again would write into the source tree.
    set(covered FALSE)
    foreach(have IN LISTS linked)
      if(seen MATCHES "^${have}/")
        set(covered TRUE)
      endif()
    endforeach()
    if(covered)
      continue()
    endif()
    cmake_path(GET seen PARENT_PATH parent)
    file(MAKE_DIRECTORY ${farm}/${parent})
    file(CREATE_LINK ${Verbatim_SOURCE_DIR}/${seen} ${farm}/${seen} SYMBOLIC)
    list(APPEND linked ${seen})
  endforeach()
  set(${out_dir} ${farm} PARENT_SCOPE)
  set(${out_includes} "${includes}" PARENT_SCOPE)
endfunction()

function(verbatim_room target)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "PATH;ARCHIVE" "SOURCES;ALONE;HEADERS;SEES")
  if(room_UNPARSED_ARGUMENTS OR NOT room_PATH)
    message(FATAL_ERROR "verbatim_room(${target}): PATH missing or unknown arguments '${room_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT room_ARCHIVE)
    set(room_ARCHIVE verbatim)
  endif()
  set(is_joined FALSE)
  # Tests of MPI's parts bring some of them along themselves.
  if(VERBATIM_JOIN_ROOMS AND room_ARCHIVE STREQUAL verbatim AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
    set(is_joined TRUE)
  endif()
  _verbatim_farm(farm includes ${target} ${room_PATH} ${room_SEES})

  # A header must compile alone, as its first user would include it: always in rooms that have nothing else to compile,
  # elsewhere when asked (VERBATIM_CHECK_HEADERS).
  set(header_units)
  if(NOT room_SOURCES OR VERBATIM_CHECK_HEADERS)
    foreach(header IN LISTS room_HEADERS)
      set(unit ${Verbatim_BINARY_DIR}/rooms/${target}.headers/${header}.cpp)
      file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${room_PATH}/${header}\"\n")
      list(APPEND header_units ${unit})
    endforeach()
  endif()

  if(room_SOURCES)
    add_library(${target} OBJECT ${room_SOURCES} ${room_ALONE} ${room_HEADERS})
    if(is_joined)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
      set_source_files_properties(${room_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    set_property(GLOBAL APPEND PROPERTY VERBATIM_ROOMS_OF_${room_ARCHIVE} ${target})
    set(built ${target})
    if(header_units)
      add_library(${target}_headers OBJECT ${header_units})
      list(APPEND built ${target}_headers)
      add_dependencies(headers ${target}_headers)
    endif()
  else()
    add_library(${target} OBJECT ${header_units} ${room_HEADERS})
    add_dependencies(headers ${target})
    set(built ${target})
  endif()
  foreach(lib IN LISTS built)
    target_include_directories(${lib} PRIVATE ${includes})
    verbatim_library_flags(${lib})
  endforeach()
  if(is_joined)
    target_compile_options(${target} PRIVATE -Wno-shadow)  # of a name in another file's unnamed namespace
  endif()
endfunction()

# Public headers, named from abi/include: installed, and each compiled alone as C and as C++ by the package tests.
function(verbatim_public_headers)
  foreach(header IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY VERBATIM_PUBLIC_HEADERS ${Verbatim_SOURCE_DIR}/abi/include/${header})
  endforeach()
endfunction()
