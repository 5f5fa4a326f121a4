// SPDX-License-Identifier: BSD-2-Clause
//
// Pools of buffers, made, emptied and filled: for the tests of vbt_pool. Any thread.
#pragma once

#include <gtest/gtest.h>
#include <verbatim/memory.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {

inline vbt_pool* make_pool(std::size_t size, std::size_t count, ibv_pd* pd = nullptr) {
  vbt_pool_attr attr{};
  attr.buffer_size = size;
  attr.count = count;
  attr.pd = pd;
  attr.access = IBV_ACCESS_LOCAL_WRITE;
  return vbt_create_pool(&attr, sizeof attr, nullptr, 0);
}

inline vbt_pool_facts facts_of(vbt_pool* pool) {
  vbt_pool_facts facts;
  EXPECT_EQ(vbt_query_pool(pool, &facts, sizeof facts), 0);
  return facts;
}

/// Until there is none: ENOMEM, and no word in the log.
inline std::vector<unsigned char*> take_all(vbt_pool* pool) {
  const CapturedStderr captured;
  std::vector<unsigned char*> taken;
  errno = 0;
  while (void* const buffer = vbt_pool_alloc(pool))
    taken.push_back(static_cast<unsigned char*>(buffer));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(captured.lines(), 0);
  return taken;
}

inline void give_all(vbt_pool* pool, const std::vector<unsigned char*>& buffers) {
  for (unsigned char* const buffer : buffers) EXPECT_EQ(vbt_pool_free(pool, buffer), 0);
}

using Pool = OpenedDevice;

}  // namespace verbatim::unit
