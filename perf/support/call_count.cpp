// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/call_count.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

#if defined(__x86_64__)

// The way back from the handler is a system call too, and must be none of those that are counted:
// the one piece of code whose calls always go to the kernel. The kernel looks at the address behind
// a call, which is to lie within the piece.
asm(R"(
  .pushsection .text
verbatim_perf_back:
  movl $15, %eax
  syscall
  ud2
verbatim_perf_back_end:
  .popsection
)");
extern "C" {
extern const char verbatim_perf_back[] __attribute__((visibility("hidden")));
extern const char verbatim_perf_back_end[] __attribute__((visibility("hidden")));
}

namespace verbatim::perf {
namespace {

// <linux/prctl.h> of Linux 5.11; older headers lack them.
constexpr int kSetDispatch = 59, kDispatchOff = 0, kDispatchOn = 1;
constexpr char kAllow = 0, kBlock = 1;

volatile char selector = kAllow;  // what the kernel looks at, at each call
volatile std::uint64_t counted = 0;
volatile bool is_complete = true;

long call(long number, const greg_t* registers) {
  register long r10 asm("r10") = registers[REG_R10];
  register long r8 asm("r8") = registers[REG_R8];
  register long r9 asm("r9") = registers[REG_R9];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(registers[REG_RDI]), "S"(registers[REG_RSI]),
                 "d"(registers[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

void take(int, siginfo_t*, void* context) {
  selector = kAllow;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const long number = registers[REG_RAX];
  // These return to another stack, or change the mask of signals, which the way back would undo: the
  // program makes them itself.
  if (number == SYS_rt_sigprocmask || number == SYS_clone || number == SYS_clone3 ||
      number == SYS_fork || number == SYS_vfork || number == SYS_rt_sigreturn) {
    constexpr int kLengthOfSyscall = 2;
    is_complete = false;
    registers[REG_RIP] -= kLengthOfSyscall;
    return;
  }
  counted = counted + 1;
  registers[REG_RAX] = call(number, registers);
  selector = kBlock;
}

/// As the kernel has it: the C library's would return by its own code.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  const char* restorer;
  std::uint64_t mask;
};

/// valgrind passes the wish on, and then makes the calls of the program by code of its own.
bool is_emulated() {
#ifdef RUNNING_ON_VALGRIND
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

bool take_signals() {
  constexpr unsigned long kHasRestorer = 0x04000000;
  const KernelAction action = {take, SA_SIGINFO | kHasRestorer, verbatim_perf_back, 0};
  return ::syscall(SYS_rt_sigaction, SIGSYS, &action, nullptr, sizeof action.mask) == 0;
}

}  // namespace

CallCount::CallCount() {
  counted = 0;
  is_complete = true;
  selector = kAllow;
  const auto length = static_cast<unsigned long>(verbatim_perf_back_end - verbatim_perf_back);
  counts_ = !is_emulated() && take_signals() &&
            ::prctl(kSetDispatch, kDispatchOn, verbatim_perf_back, length, &selector) == 0;
  if (counts_) selector = kBlock;
}

CallCount::~CallCount() {
  selector = kAllow;
  if (counts_) ::prctl(kSetDispatch, kDispatchOff, 0, 0, 0);
}

std::optional<std::uint64_t> CallCount::calls() const {
  if (!counts_ || !is_complete) return {};
  return counted;
}

CallCountPause::CallCountPause() noexcept : before_(selector) { selector = kAllow; }
CallCountPause::~CallCountPause() { selector = before_; }

}  // namespace verbatim::perf

#else

namespace verbatim::perf {

CallCount::CallCount() : counts_(false) {}
CallCount::~CallCount() = default;
std::optional<std::uint64_t> CallCount::calls() const { return {}; }
CallCountPause::CallCountPause() noexcept : before_(0) {}
CallCountPause::~CallCountPause() = default;

}  // namespace verbatim::perf

#endif
