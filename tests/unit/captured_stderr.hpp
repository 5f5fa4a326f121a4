// SPDX-License-Identifier: BSD-2-Clause
// What the library writes to standard error while one of these lives. One at a time per process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "runtime/base/log.hpp"

namespace verbatim::unit {

class CapturedStderr {
 public:
  CapturedStderr()
      : original_(::dup(STDERR_FILENO)), memory_(::memfd_create("stderr", MFD_CLOEXEC)) {
    ::dup2(memory_, STDERR_FILENO);
    tell_each_refusal(true);
  }
  ~CapturedStderr() {
    ::dup2(original_, STDERR_FILENO);
    ::close(original_);
    ::close(memory_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string text() const {
    std::string all(static_cast<std::size_t>(::lseek(memory_, 0, SEEK_END)), '\0');
    [[maybe_unused]] const ssize_t got = ::pread(memory_, all.data(), all.size(), 0);
    return all;
  }
  long lines() const {
    const std::string all = text();
    return std::count(all.begin(), all.end(), '\n');
  }

 private:
  int original_;
  int memory_;
};

}  // namespace verbatim::unit
