// SPDX-License-Identifier: BSD-2-Clause
// The device and port that options name, opened; of a pingpong, known to be able to do what they ask.
//
// Main thread. Failures begin with the classic program's words and name the option to change.
#pragma once

#include <infiniband/verbs.h>

#include "perf/cli/pingpong_options.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

using perf::ContextHandle;

struct Device {
  ContextHandle context;
  ibv_device_attr_ex attr = {};
  ibv_port_attr port = {};
  const char* name() const { return context->device->name; }
};

/// The device of that name (null: the first), whose port it is that options ask for.
Device open_device(const char* wanted, std::uint8_t ib_port);

/// The way to where a LID and a GID (zero: none was told) say; throws when the other side lives
/// behind GIDs and we were not told ours.
ibv_ah_attr path_to(const PingpongOptions& options, std::uint16_t lid, const ibv_gid& gid);

/// Refuses here, in words that name the option, what would else fail later.
void check_limits(const Device& device, const PingpongOptions& options);

}  // namespace verbatim::cli
