# SPDX-License-Identifier: BSD-2-Clause
# Compiler settings, attached to targets one by one: a project that adds us with add_subdirectory() keeps its own flags.

include_guard(GLOBAL)

# Warnings that GCC 12 and Clang 14 agree on; VERBATIM_WERROR turns them into errors (CI).
function(verbatim_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual -Wformat=2 -Wundef -Wvla
    -Wimplicit-fallthrough
    # GCC also says it, after inlining, of calls whose result is compared with the size.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-format-truncation>
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
    $<$<BOOL:${VERBATIM_WERROR}>:-Werror>)
  if(VERBATIM_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC says at every fence that TSan does not model fences; it is known and nothing can be done at the call.
    target_compile_options(${target} PRIVATE -Wno-tsan)
  endif()
endfunction()

# The sanitizer flags of this build as a list; empty without VERBATIM_SANITIZE.
function(verbatim_sanitizer_flags out)
  set(flags)
  if(VERBATIM_SANITIZE)
    set(flags -fsanitize=${VERBATIM_SANITIZE} -fno-omit-frame-pointer)
    if(VERBATIM_SANITIZE MATCHES undefined)
      # vptr checks need RTTI, which library objects do not have.
      list(APPEND flags -fno-sanitize=vptr -fno-sanitize-recover=undefined)
    endif()
  endif()
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

# What every object inside libverbatim.a is built with.
function(verbatim_library_flags target)
  verbatim_warnings(${target})
  verbatim_sanitizer_flags(sanitize)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    C_STANDARD 11 C_STANDARD_REQUIRED ON
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>
    # One section per function, so that a static program with --gc-sections carries only what it calls.
    -ffunction-sections -fdata-sections
    # __FILE__ in a log line is relative to the project, wherever it was built.
    -fmacro-prefix-map=${Verbatim_SOURCE_DIR}/=
    -fmacro-prefix-map=${Verbatim_BINARY_DIR}/rooms/=
    ${sanitize}
    # Counters for libFuzzer. A program that is not one of its targets does nothing with them.
    $<$<BOOL:${VERBATIM_FUZZ}>:-fsanitize=fuzzer-no-link>
    # Fat: the same archive serves linkers with and without the LTO plugin. GCC only.
    $<$<BOOL:${VERBATIM_LTO}>:-flto -ffat-lto-objects>)
endfunction()

# A room in which nothing is on a message's way: what -O3 makes of it is a quarter larger, in every static program.
function(verbatim_off_the_messages_way target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# Files of a room of which that is true. What is joined with others cannot have an option of its own.
function(verbatim_files_off_the_messages_way)
  if(NOT VERBATIM_JOIN_ROOMS)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  endif()
endfunction()
