// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace verbatim::shm {

/// While it lives this process gets no further descriptor; those that it has stay.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace verbatim::shm
