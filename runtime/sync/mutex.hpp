// SPDX-License-Identifier: BSD-2-Clause
// A sleeping lock for control code (std::mutex would need the C++ runtime). Any thread.
#pragma once

#include <pthread.h>

namespace verbatim {

class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept { ::pthread_mutex_lock(&mutex_); }
  [[nodiscard]] bool try_lock() noexcept { return ::pthread_mutex_trylock(&mutex_) == 0; }
  void unlock() noexcept { ::pthread_mutex_unlock(&mutex_); }
  [[nodiscard]] pthread_mutex_t* native() noexcept { return &mutex_; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Holds a plain pthread mutex (those inside the public verbs structs) for a scope.
class [[nodiscard]] PthreadGuard {
 public:
  explicit PthreadGuard(pthread_mutex_t& mutex) noexcept : mutex_(mutex) {
    ::pthread_mutex_lock(&mutex_);
  }
  PthreadGuard(const PthreadGuard&) = delete;
  PthreadGuard& operator=(const PthreadGuard&) = delete;
  ~PthreadGuard() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace verbatim
