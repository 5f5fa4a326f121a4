// SPDX-License-Identifier: BSD-2-Clause
// What a piece of code really executes, instruction by instruction: a child process runs it between
// two breakpoints, and its parent steps it with ptrace and counts. Unlike reading an object file
// this follows the one way that a given message takes. x86-64 only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace verbatim::perf {

struct Trace {
  std::uint32_t instructions = 0;
  std::uint32_t direct_calls = 0;
  std::uint32_t indirect_calls = 0;
  std::uint32_t indirect_jumps = 0;
  std::uint32_t system_calls = 0;
  std::uint32_t locked = 0;  // lock-prefixed, and exchanges with memory
  std::uint32_t returns = 0;
};

/// Adds one instruction, given its first bytes (15 are enough).
void count_instruction(std::span<const std::uint8_t> code, Trace& trace);

struct TraceResult {
  std::vector<Trace> traces;  // one for each traced() of the child, in order
  std::string refusal;        // why nothing could be traced (ptrace forbidden): not a failure
};

/// Starts argv, which must call be_traced() and then use traced(), and steps it to its end. Throws
/// std::runtime_error when the child ends with an error.
TraceResult trace_program(const std::vector<std::string>& argv);

/// In the child, once: lets the parent trace it.
void be_traced();

/// In the child: the parent counts what `body` executes; nothing of the markers themselves.
template <class Body>
inline void traced(Body&& body) {
#if defined(__x86_64__)
  asm volatile("int3" ::: "memory");
  body();
  asm volatile("int3" ::: "memory");
#else
  body();
#endif
}

}  // namespace verbatim::perf
