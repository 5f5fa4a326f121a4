# SPDX-License-Identifier: BSD-2-Clause
# The list of MPI's functions is the prototypes in the chapters of mpi.h: here it becomes a list of CMake's.

# Each prototype of these headers without its semicolon, an array's brackets as < and >: in a list of CMake's a bracket keeps
# a semicolon from ending an element.
function(prototypes_of out)
  set(all)
  foreach(header IN LISTS ARGN)
    file(READ ${header} text)
    string(REGEX REPLACE "//[^\n]*\n" "\n" text "${text}")
    string(REPLACE "[" "<" text "${text}")
    string(REPLACE "]" ">" text "${text}")
    string(REGEX MATCHALL "\n(int|double|MPI_[A-Za-z]+) MPI_[A-Z][A-Za-z0-9_]*\\([^;]*\\);" found "${text}")
    list(REMOVE_ITEM found "")
    list(TRANSFORM found STRIP)
    list(APPEND all ${found})
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

macro(with_brackets text)
  string(REPLACE "<" "[" ${text} "${${text}}")
  string(REPLACE ">" "]" ${text} "${${text}}")
endmacro()
