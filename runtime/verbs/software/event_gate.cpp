// SPDX-License-Identifier: BSD-2-Clause
// The body of event_gate.hpp. The descriptor is an eventfd that holds 1 or nothing.
#include "runtime/verbs/software/event_gate.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/sync/futex.hpp"

namespace verbatim {
namespace {

/// read(2), for which this wait stands, is a cancellation point: programs end their event threads
/// by pthread_cancel. The bare system call is none, so cancellation may strike anywhere within it;
/// no lock is held there.
int cancellable_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
  int before = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  const int error = futex_wait(word, seen);
  ::pthread_setcanceltype(before, nullptr);
  return error;
}

}  // namespace

int EventGate::open() noexcept {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    log_error("a descriptor for events: %s%s", std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  fd_.reset(fd);
  return 0;
}

void EventGate::announce_and_unlock(bool was_empty) noexcept {
  if (was_empty) {
    // Under the mutex: written after it, a reader could have emptied the queue before, and the
    // descriptor would stay readable with nothing behind it.
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
  }
  arrivals_.fetch_add(1, std::memory_order_relaxed);
  const bool somebody_sleeps = sleepers_ != 0;
  mutex_.unlock();
  if (somebody_sleeps) futex_wake(arrivals_, 1);
}

void EventGate::became_empty_locked() noexcept {
  // It holds 1, so this does not block, whatever the flags are.
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
}

int EventGate::wait_and_unlock() noexcept {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) != 0) {
    mutex_.unlock();
    return flags < 0 ? errno : EAGAIN;
  }
  // An arrival after this mutex is released changes the word, and the sleep does not begin.
  const std::uint32_t seen = arrivals_.load(std::memory_order_relaxed);
  ++sleepers_;
  mutex_.unlock();
  const int error = cancellable_wait(arrivals_, seen);
  mutex_.lock();
  --sleepers_;
  mutex_.unlock();
  return error;
}

}  // namespace verbatim
