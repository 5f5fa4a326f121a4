// SPDX-License-Identifier: BSD-2-Clause
// The descriptor is an eventfd that holds 1 or nothing.
//
// It is written and read under the mutex, and by syscall(2): write(2) and read(2) are cancellation
// points, and a thread that ends there keeps the mutex for ever.
#include "runtime/verbs/software/event_gate.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/base/log.hpp"
#include "runtime/sync/futex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

int EventGate::open() noexcept {
  const int fd = ::eventfd(0, EFD_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    log_error("a descriptor for events: %s%s", std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  fd_ = UniqueFd(fd);
  return 0;
}

bool EventGate::let_others_wake(const SharedBed& shared) noexcept {
  shared.bed->store(0, std::memory_order_relaxed);
  shared.on_the_way->store(0, std::memory_order_relaxed);
  static constinit std::atomic<bool> possible{true};
  if (!possible.load(std::memory_order_relaxed)) return false;
  // The first does not hold what is expected, so this does not sleep.
  const FutexWord words[] = {{&arrivals_, ~arrivals_.load(std::memory_order_relaxed), false},
                             {shared.bed, 0, true},
                             {shared.due, 0, true}};
  if (futex_wait_on_any(words) != 0) {
    possible.store(false, std::memory_order_relaxed);  // valgrind warns of each try
    return false;
  }
  shared_ = shared;
  return true;
}

void EventGate::make_readable_locked() noexcept {
  // The application may have closed it, and have a file under its number.
  if (!fd_.is_ours()) return;
  // Under the mutex: written after it, a reader could have emptied the queue before, and the
  // descriptor would stay readable with nothing behind it.
  const std::uint64_t one = 1;
  // Should it fail, the next event tries again, and nobody waits for what is not there.
  is_readable_ = ::syscall(SYS_write, fd_.get(), &one, sizeof one) == sizeof one;
}

void EventGate::announce_and_unlock() noexcept {
  const bool is_for_others = collectors_ == 0;
  if (is_for_others && !is_readable_) make_readable_locked();
  arrivals_.fetch_add(1, std::memory_order_relaxed);
  const bool somebody_sleeps = is_for_others && sleepers_.load(std::memory_order_relaxed) != 0;
  // Whoever takes the event may end the gate: from here on only the address of the word is used.
  std::atomic<std::uint32_t>& word = arrivals_;
  mutex_.unlock();
  if (somebody_sleeps) (void)futex_wake(word, 1);
}

void EventGate::became_empty_locked() noexcept {
  if (!is_readable_) return;
  is_readable_ = false;
  if (!fd_.is_ours()) return;
  // It holds 1, so this does not block, whatever the flags are.
  std::uint64_t count = 0;
  is_readable_ = ::syscall(SYS_read, fd_.get(), &count, sizeof count) != sizeof count;
}

void EventGate::begin_collecting() noexcept {
  const LockGuard guard(mutex_);
  ++collectors_;
}

void EventGate::end_collecting_locked(bool empty) noexcept {
  // Another who collects takes one as well, and comes here.
  if (--collectors_ != 0 || empty) return;
  if (!is_readable_) make_readable_locked();
  if (sleepers_.load(std::memory_order_relaxed) != 0) (void)futex_wake(arrivals_);
}

int EventGate::wait_and_unlock() noexcept {
  const int flags = fd_.is_ours() ? ::fcntl(fd_.get(), F_GETFL) : -1;
  if (flags < 0 || (flags & O_NONBLOCK) != 0) {
    is_slept_at_.store(false, std::memory_order_relaxed);
    mutex_.unlock();
    return flags < 0 ? EBADF : EAGAIN;
  }
  // An arrival after this mutex is released changes the word, and the sleep does not begin.
  const std::uint32_t seen = arrivals_.load(std::memory_order_relaxed);
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  is_slept_at_.store(shared_.bed != nullptr, std::memory_order_relaxed);
  mutex_.unlock();
  return sleep(seen);
}

/// read(2), for which this stands, is a cancellation point: programs end their event threads by
/// pthread_cancel. The bare system call is none, so cancellation may strike anywhere within it; no
/// lock is held there.
int EventGate::sleep(std::uint32_t seen) noexcept {
  int error = 0;
  pthread_cleanup_push(
      [](void* self) {
        auto& gate = *static_cast<EventGate*>(self);
        gate.leave_bed();
        gate.end_way();
      },
      this);
  int before = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  error = fall_asleep(seen);
  ::pthread_setcanceltype(before, nullptr);
  pthread_cleanup_pop(0);
  leave_bed();
  return error;
}

int EventGate::fall_asleep(std::uint32_t seen) noexcept {
  if (shared_.bed == nullptr) return futex_wait(arrivals_, seen);
  const FutexWord words[] = {
      {&arrivals_, seen, false}, {shared_.bed, 0, true}, {shared_.due, 0, true}};
  return futex_wait_on_any(words);
}

void EventGate::begin_way() noexcept {
  if (shared_.bed != nullptr) shared_.on_the_way->fetch_add(1, std::memory_order_seq_cst);
}

void EventGate::end_way() noexcept {
  if (shared_.bed == nullptr) return;
  shared_.on_the_way->fetch_sub(1, std::memory_order_seq_cst);
  // Who has woken this thread, or saw it on the way, counts on it to have looked since.
  shared_.look_for_us();
}

// The number stays: the program knows it. Reading the parent's would take its events away.
void EventGate::part_from_parent() noexcept {
  ::new (&mutex_) Mutex;
  sleepers_.store(0, std::memory_order_relaxed);
  collectors_ = 0;
  is_readable_ = false;  // what is written here is not for us to read
  if (!fd_.is_ours()) return;
  const int own = ::eventfd(1, EFD_CLOEXEC);
  if (own < 0) return;
  (void)::dup3(own, fd_.get(), O_CLOEXEC);
  ::close(own);
}

void EventGate::doubt_descriptor() noexcept {
  const LockGuard guard(mutex_);
  fd_.doubt();
}

void EventGate::leave_bed() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace verbatim
