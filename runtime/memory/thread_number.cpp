// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/thread_number.hpp"

#include <pthread.h>

#include <atomic>
#include <cstddef>

#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit bool is_ending = false;

struct Numbers {
  Mutex change;
  bool taken[kMaxThreadNumbers] = {true};
  std::atomic<std::uint32_t> highest{0};
  pthread_key_t key = 0;
  bool key_made = false;
  bool fork_known = false;
};

constinit Numbers numbers;

void lock_for_fork() noexcept { numbers.change.lock(); }
void unlock_after_fork() noexcept { numbers.change.unlock(); }
/// The child has one thread.
void forget_others() noexcept {
  for (std::uint32_t number = 1; number < kMaxThreadNumbers; ++number)
    numbers.taken[number] = number == thread_number;
  numbers.change.unlock();
}

/// What runs later in the ending thread has no number: nobody would take it back.
void end_thread(void* value) noexcept {
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(value));
  is_ending = true;
  thread_number = 0;
  const LockGuard guard(numbers.change);
  numbers.taken[number] = false;
}

bool prepare_locked() noexcept {
  if (!numbers.fork_known)
    numbers.fork_known = ::pthread_atfork(lock_for_fork, unlock_after_fork, forget_others) == 0;
  if (!numbers.key_made) numbers.key_made = ::pthread_key_create(&numbers.key, end_thread) == 0;
  return numbers.fork_known && numbers.key_made;
}

}  // namespace

std::uint32_t number_this_thread() noexcept {
  if (thread_number != 0) return thread_number;
  if (is_ending) return 0;
  const LockGuard guard(numbers.change);
  if (!prepare_locked()) return 0;
  std::uint32_t number = 1;
  while (number < kMaxThreadNumbers && numbers.taken[number]) ++number;
  if (number == kMaxThreadNumbers) return 0;
  const auto value = static_cast<std::uintptr_t>(number);
  if (::pthread_setspecific(numbers.key, reinterpret_cast<void*>(value)) != 0) return 0;
  numbers.taken[number] = true;
  if (number > numbers.highest.load(std::memory_order_relaxed))
    numbers.highest.store(number, std::memory_order_release);
  return thread_number = number;
}

std::uint32_t highest_thread_number() noexcept {
  return numbers.highest.load(std::memory_order_acquire);
}

}  // namespace verbatim
