// SPDX-License-Identifier: BSD-2-Clause
//
// Short lives with the library, from opening the device to closing it, by the verbs themselves:
// what they make, they destroy, wherever they had to give up.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/side.hpp"

namespace verbatim::harness {

struct Course {
  /// Everything was made, and every request succeeded.
  bool completed = false;
  /// What a caller must never see: no error where nothing was made, an answer that is no errno, a
  /// wait without end, a destroy that refuses for good. Empty: all is well.
  std::string broken;
  /// The first verb that said no, with its answer; for a reader.
  std::string refusal;
};

/// With a queue pair of `partner`, who lives in another process, and with one of its own.
Course converse(Side& partner);

/// Alone, with every kind of object that converse() has not: datagrams and groups, unreliable
/// connections, shared receives, extended queues, windows, device memory, domains, placed memory.
Course make_the_rarer_objects();

}  // namespace verbatim::harness
