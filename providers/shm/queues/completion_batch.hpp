// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::shm {

/// Completions of small messages that one queue pair received one after the other: they differ in
/// two things. A cursor hands them on without ever writing them out, each of which would take a
/// cache line. Places begin at 1, so that a cursor can stand before the first.
struct CompletionBatch {
  static constexpr std::uint32_t kMost = 32;  ///< as programs ask ibv_poll_cq for

  std::uint64_t wr_ids[kMost + 1];
  std::uint8_t lengths[kMost + 1 + sizeof(std::uint64_t)];  ///< written some at a time
  ibv_wc rest;                                              ///< of all of them
};

}  // namespace verbatim::shm
