# SPDX-License-Identifier: BSD-2-Clause
# One way to declare a GoogleTest executable.
#
#   verbatim_test(unit_rings SOURCES ring_test.cpp  LABELS unit fast  [TIMEOUT 60] [LINKS extra_target ...]
#                 [OPTIMISE 3] [API_ONLY] [NO_MAIN] [EACH] [DEFINES X=1 ...] [ENVIRONMENT X=off]
#                 [PROPERTIES RUN_SERIAL TRUE])
#
# EACH: a process for each of its sentences, not for each suite: for those that take seconds, or may take the process along.
# Tests see the whole tree ("runtime/base/result.hpp", "tests/support/..."), and link the archive as a user would.

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/VerbatimFlags.cmake)

# What every program of tests/ and perf/ shares: language level, warnings, the tree as include path, the archive.
function(verbatim_program target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE ${Verbatim_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE Verbatim::verbs)
  target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
  # The compilers' own words for it differ, and are not said of files that are not watched themselves.
  if(VERBATIM_SANITIZE)
    target_compile_definitions(${target} PRIVATE VBT_UNDER_SANITIZER)
  endif()
  if(VERBATIM_SANITIZE MATCHES thread)
    target_compile_definitions(${target} PRIVATE VBT_UNDER_THREAD_SANITIZER)
  endif()
  verbatim_warnings(${target})
  # Clang counts it to -Wconversion, GCC does not; the library is held to it, programs are not.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion>)
endfunction()

# Has ctest run the tests of `target`, as VerbatimDiscover.cmake groups them; once more in another environment under another
# name.
#
#   verbatim_discover(target [NAME target_without_x] [FILTER *_Ordinary] [ENVIRONMENT X=off] [EACH] LABELS unit fast
#                     [PROPERTIES TIMEOUT 60])
#
# The ThreadSanitizer sees one process. Of two that have each other's memory mapped it sees nothing that one which plays both
# does not show; what two ask of each other's service threads, it does.
function(verbatim_discover target)
  cmake_parse_arguments(PARSE_ARGV 1 found "EACH" "NAME;FILTER;ENVIRONMENT" "LABELS;PROPERTIES")
  if(NOT found_NAME)
    set(found_NAME ${target})
  endif()
  if(NOT found_FILTER)
    set(found_FILTER "*")
  endif()
  set(but)
  if(VERBATIM_SANITIZE MATCHES thread)
    set(but "*TwoProcesses_Mapped")
  endif()
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${found_NAME})
  if(found_ENVIRONMENT)
    # One property, however many variables it sets.
    string(REPLACE ";" "\\;" variables "${found_ENVIRONMENT}")
    list(APPEND found_PROPERTIES ENVIRONMENT "${variables}")
  endif()
  set(properties "LABELS [==[${found_LABELS}]==]")
  foreach(word IN LISTS found_PROPERTIES)
    string(APPEND properties " [==[${word}]==]")
  endforeach()
  file(GENERATE OUTPUT ${base}_discover.cmake CONTENT
"set(program [==[$<TARGET_FILE:${target}>]==])
set(emulator \"${CMAKE_CROSSCOMPILING_EMULATOR}\")
set(prefix [==[${found_NAME}:]==])
set(filter [==[${found_FILTER}]==])
set(but ${but})
set(environment [==[${found_ENVIRONMENT}]==])
set(each ${found_EACH})
set(properties [===[${properties}]===])
set(written [==[${base}_tests.cmake]==])
")
  set(script ${Verbatim_SOURCE_DIR}/toolchains/cmake/VerbatimDiscover.cmake)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${base}_discover.cmake ${script})
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM BYPRODUCTS ${base}_tests.cmake
    COMMAND ${CMAKE_COMMAND} -D settings=${base}_discover.cmake -P ${script})
  file(WRITE ${base}_include.cmake
"if(EXISTS [==[${base}_tests.cmake]==])
  include([==[${base}_tests.cmake]==])
else()
  # Fails wherever its tests would have been chosen.
  add_test(${found_NAME}_NOT_BUILT ${found_NAME}_NOT_BUILT)
  set_tests_properties(${found_NAME}_NOT_BUILT PROPERTIES LABELS [==[${found_LABELS}]==])
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${base}_include.cmake)
endfunction()

# The targets `fast`, `threads` and `long` are what the tests of these labels need: all that a build makes which runs no others.
foreach(label fast threads long)
  add_custom_target(${label})
endforeach()
function(verbatim_needed_by_labels target)
  foreach(label fast threads)
    if(label IN_LIST ARGN)
      add_dependencies(${label} ${target})
    endif()
  endforeach()
endfunction()

# Sentences run once: optimising them, and describing every template to a debugger, was most of the sanitizers' builds. What
# they call, the library and tests/support, is optimised as the preset says.
function(verbatim_test_options target optimise api_only)
  target_compile_options(${target} PRIVATE -O${optimise})
  if(NOT VERBATIM_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -g1)
  # What is watched is behind the API. Not so for threads: ThreadSanitizer must see who waits for whom.
  if(api_only AND VERBATIM_SANITIZE MATCHES address)
    set_target_properties(${target} PROPERTIES VERBATIM_UNWATCHED TRUE)
  endif()
endfunction()

# Parsing GoogleTest, the standard library and tests/support is most of what compiling a test takes, and what its templates
# come to is most of the rest: once for some files of a target, which are compiled as one. (A precompiled header saves less,
# and nothing where the compiler cannot have it at the address it was made for.) Not with ccache, which knows the files that
# have not changed; a build with it, or with VERBATIM_JOIN_FILES=OFF, shows that every file includes what it uses.
function(verbatim_joined target)
  if(VERBATIM_JOIN_FILES AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

function(verbatim_test target)
  cmake_parse_arguments(PARSE_ARGV 1 test "NO_MAIN;API_ONLY;EACH" "TIMEOUT;OPTIMISE;ENVIRONMENT" "SOURCES;LABELS;LINKS;DEFINES;PROPERTIES")
  if(test_UNPARSED_ARGUMENTS OR NOT test_SOURCES OR NOT test_LABELS)
    message(FATAL_ERROR "verbatim_test(${target}): SOURCES and LABELS are needed; unknown: '${test_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 60)
  endif()
  if(NOT DEFINED test_OPTIMISE)
    set(test_OPTIMISE 0)
  endif()
  add_executable(${target} ${test_SOURCES})
  verbatim_program(${target})
  verbatim_test_options(${target} ${test_OPTIMISE} ${test_API_ONLY})
  verbatim_joined(${target})
  target_compile_definitions(${target} PRIVATE ${test_DEFINES})
  target_link_libraries(${target} PRIVATE ${test_LINKS} GTest::gmock GTest::gtest)
  if(NOT test_NO_MAIN)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  if(test_EACH)
    set(each EACH)
  endif()
  verbatim_discover(${target} ${each} ENVIRONMENT ${test_ENVIRONMENT} LABELS ${test_LABELS} PROPERTIES TIMEOUT ${test_TIMEOUT} ${test_PROPERTIES})
  verbatim_needed_by_labels(${target} ${test_LABELS})
endfunction()

# Path by which a test of this build starts `target` as a process of its own: the program, or in a cross build a script that
# starts it under the emulator.
function(verbatim_startable out target)
  if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
    set(${out} $<TARGET_FILE:${target}> PARENT_SCOPE)
    return()
  endif()
  list(POP_FRONT CMAKE_CROSSCOMPILING_EMULATOR program)
  find_program(VERBATIM_EMULATOR ${program} REQUIRED)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " arguments)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.emulated)
  file(GENERATE OUTPUT ${script}
    CONTENT "#!/bin/sh\nexec ${VERBATIM_EMULATOR} ${arguments} $<TARGET_FILE:${target}> \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(${out} ${script} PARENT_SCOPE)
endfunction()
