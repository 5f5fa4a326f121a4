// SPDX-License-Identifier: BSD-2-Clause
#include "perf/codegen/trace.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint8_t kBreakpoint = 0xCC;
constexpr std::size_t kLongestInstruction = 15;
constexpr int kRefused = 77;

bool is_legacy_prefix(std::uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2E:
    case 0x36:
    case 0x3E:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xF0:
    case 0xF2:
    case 0xF3:
      return true;
    default:
      return false;
  }
}

#if defined(__x86_64__)

using Code = std::array<std::uint8_t, kLongestInstruction>;

std::uint64_t instruction_pointer(pid_t pid) {
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &registers) != 0) {
    throw std::runtime_error(std::string("read registers: ") + std::strerror(errno));
  }
  return registers.rip;
}

std::span<const std::uint8_t> code_at(pid_t pid, std::uint64_t address, Code& code) {
  const iovec local = {code.data(), code.size()};
  const iovec remote = {reinterpret_cast<void*>(address), code.size()};
  ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got <= 0) throw std::runtime_error(std::string("read code: ") + std::strerror(errno));
  return {code.data(), static_cast<std::size_t>(got)};
}

int await_stop(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, __WALL) < 0) {
    if (errno != EINTR) throw std::runtime_error(std::string("waitpid: ") + std::strerror(errno));
  }
  return status;
}

// The child stands behind the first breakpoint; steps it up to the second.
Trace step_to_breakpoint(pid_t pid) {
  Trace trace;
  while (true) {
    Code code;
    const auto bytes = code_at(pid, instruction_pointer(pid), code);
    if (bytes[0] == kBreakpoint) return trace;
    count_instruction(bytes, trace);
    if (ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) != 0) {
      throw std::runtime_error(std::string("single step: ") + std::strerror(errno));
    }
    const int status = await_stop(pid);
    if (!WIFSTOPPED(status)) throw std::runtime_error("the traced program ended while stepped");
  }
}

#endif

}  // namespace

void count_instruction(std::span<const std::uint8_t> code, Trace& trace) {
  ++trace.instructions;
  std::size_t at = 0;
  bool locked = false;
  const auto byte = [&](std::size_t i) { return i < code.size() ? code[i] : std::uint8_t{0}; };
  while (at < code.size() && is_legacy_prefix(code[at])) locked |= code[at++] == 0xF0;
  if ((byte(at) & 0xF0) == 0x40) ++at;  // REX
  const std::uint8_t opcode = byte(at);
  const std::uint8_t modrm = byte(at + 1);
  const unsigned extension = (modrm >> 3) & 7;
  if (opcode == 0xE8) ++trace.direct_calls;
  if (opcode == 0xFF && (extension == 2 || extension == 3)) ++trace.indirect_calls;
  if (opcode == 0xFF && (extension == 4 || extension == 5)) ++trace.indirect_jumps;
  if (opcode == 0xC3 || opcode == 0xC2) ++trace.returns;
  if (opcode == 0xCD || (opcode == 0x0F && (modrm == 0x05 || modrm == 0x34))) ++trace.system_calls;
  if ((opcode == 0x86 || opcode == 0x87) && (modrm >> 6) != 3) locked = true;
  trace.locked += locked;
}

TraceResult trace_program(const std::vector<std::string>& argv) {
#if defined(__x86_64__)
  TraceResult result;
  Child child(argv, {});
  const pid_t pid = child.pid();
  bool inside = false;
  while (true) {
    const int status = await_stop(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) {
      result.refusal = "ptrace is not permitted here";
      return result;
    }
    if (!WIFSTOPPED(status)) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
      throw std::runtime_error("the traced program failed");
    }
    int deliver = WSTOPSIG(status);
    if (deliver == SIGSTOP) deliver = 0;  // be_traced()
    if (deliver == SIGTRAP) {
      deliver = 0;
      // The exec of a traced program and the closing breakpoint stop it too.
      Code code;
      const std::uint64_t behind = instruction_pointer(pid);
      const bool breakpoint = code_at(pid, behind - 1, code)[0] == kBreakpoint;
      if (breakpoint && !inside) result.traces.push_back(step_to_breakpoint(pid));
      if (breakpoint) inside = !inside;
    }
    if (ptrace(PTRACE_CONT, pid, nullptr, deliver) != 0) {
      throw std::runtime_error(std::string("continue: ") + std::strerror(errno));
    }
  }
#else
  (void)argv;
  return {{}, "instructions are only counted on x86-64"};
#endif
}

void be_traced() {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kRefused);
  raise(SIGSTOP);
}

}  // namespace verbatim::perf
