# SPDX-License-Identifier: BSD-2-Clause
# One way to declare a GoogleTest executable.
#
#   verbatim_test(unit_rings SOURCES ring_test.cpp  LABELS unit fast  [TIMEOUT 60] [LINKS extra_target ...]
#                 [OPTIMISE 3] [API_ONLY] [NO_MAIN] [DEFINES X=1 ...] [PROPERTIES RUN_SERIAL TRUE])
#
# Tests see the whole tree ("runtime/base/result.hpp", "tests/support/..."), and link the archive as a user would.

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/VerbatimFlags.cmake)
include(GoogleTest)

# What every program of tests/ and perf/ shares: language level, warnings, the tree as include path, the archive.
function(verbatim_program target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE ${Verbatim_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE Verbatim::verbs)
  target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
  verbatim_warnings(${target})
  # Clang counts it to -Wconversion, GCC does not; the library is held to it, programs are not.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion>)
endfunction()

# Labels the tests of a list that gtest_discover_tests() fills (TEST_LIST, by default <target>_TESTS). Through a file that
# ctest reads after the discovered ones: given as PROPERTIES LABELS, only the first label of several would arrive.
function(verbatim_label_tests list)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${list}_labels.cmake)
  file(WRITE ${file} "if(${list})\n  set_tests_properties(\${${list}} PROPERTIES LABELS \"${ARGN}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# Sentences run once: optimising them, and describing every template to a debugger, was most of the sanitizers' builds. What
# they call, the library and tests/support, is optimised as the preset says.
function(verbatim_test_options target optimise api_only)
  target_compile_options(${target} PRIVATE -O${optimise})
  if(NOT VERBATIM_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -g1)
  target_compile_definitions(${target} PRIVATE VBT_UNDER_SANITIZER)
  # What is watched is behind the API. Not so for threads: ThreadSanitizer must see who waits for whom.
  if(api_only AND VERBATIM_SANITIZE MATCHES address)
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
  endif()
endfunction()

function(verbatim_test target)
  cmake_parse_arguments(PARSE_ARGV 1 test "NO_MAIN;API_ONLY" "TIMEOUT;OPTIMISE" "SOURCES;LABELS;LINKS;DEFINES;PROPERTIES")
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
  target_compile_definitions(${target} PRIVATE ${test_DEFINES})
  target_link_libraries(${target} PRIVATE ${test_LINKS} GTest::gmock GTest::gtest)
  if(NOT test_NO_MAIN)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  gtest_discover_tests(${target}
    TEST_PREFIX "${target}:" DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES  # parameters name themselves
    PROPERTIES TIMEOUT ${test_TIMEOUT} ${test_PROPERTIES})
  verbatim_label_tests(${target}_TESTS ${test_LABELS})
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
