# SPDX-License-Identifier: BSD-2-Clause
# Writes `written`: a body for each function that `chapters` of mpi.h declare and no file of `entries` defines. A function that
# is defined twice, or that mpi.h does not know, is an error here: of two in one archive the linker would take either.
#
#   cmake -D written=missing.cpp -D "chapters=a.h;b.h" -D "entries=a.cpp;b.cpp" -P missing_functions.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../include/prototypes.cmake)

set(defined)
foreach(file IN LISTS entries)
  file(STRINGS ${file} lines REGEX "^VMPI_ENTRY\\(")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^VMPI_ENTRY\\([^,]*, *([A-Za-z0-9_]+).*" "\\1" name "${line}")
    if(DEFINED by_${name})
      message(FATAL_ERROR "${name} is defined in ${file} and in ${by_${name}}")
    endif()
    set(by_${name} ${file})
    list(APPEND defined ${name})
  endforeach()
endforeach()

set(bodies "")
set(declared)
prototypes_of(prototypes ${chapters})
foreach(prototype IN LISTS prototypes)
  string(REGEX MATCH "^([A-Za-z_]+) (MPI_[A-Za-z0-9_]+)(\\(.*\\))$" matched "${prototype}")
  set(result ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  set(parameters "${CMAKE_MATCH_3}")
  list(APPEND declared ${name})
  if(DEFINED by_${name})
    continue()
  endif()
  # Nothing is done with the arguments: their names go, so that no compiler says that they are unused.
  if(NOT parameters STREQUAL "(void)")
    string(REGEX REPLACE "([ *])[A-Za-z_0-9]+((<[0-9]*>)*)([,)])" "\\1\\2\\4" parameters "${parameters}")
  endif()
  set(answer "missing(\"${name}\")")
  if(NOT result MATCHES "^(int|double|MPI_Aint|MPI_Fint)$")
    set(answer "missing(\"${name}\"), nullptr")  # A handle that nothing knows.
  endif()
  string(APPEND bodies "VMPI_ENTRY(${result}, ${name}, ${parameters}) { return ${answer}; }\n")
endforeach()

foreach(name IN LISTS defined)
  if(NOT name IN_LIST declared)
    message(FATAL_ERROR "${by_${name}} defines ${name}, which mpi.h does not declare")
  endif()
endforeach()

with_brackets(bodies)
file(CONFIGURE OUTPUT ${written} @ONLY CONTENT
"// SPDX-License-Identifier: BSD-2-Clause
// Made by mpi_shim/api/missing_functions.cmake.
#include \"mpi_shim/api/entry.hpp\"
#include \"mpi_shim/core/missing.hpp\"

using vmpi::missing;

@bodies@")
