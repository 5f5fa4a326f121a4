// SPDX-License-Identifier: BSD-2-Clause
//
// A child that gets less from the system than its parent. Named in the child's environment, applied
// before it does anything:
//
//   Side child({{kCondition, "deny membarrier"}});             // EPERM, as a filter in a container
//   says Side child({{kCondition, "deny memfd_create pidfd_open"}}); Side child({{kCondition,
//   "limit nofile 40"}});             // also as and fsize, in bytes
#pragma once

namespace verbatim::harness {

inline constexpr char kCondition[] = "VBT_CONDITION";

/// What the environment asks for, if anything. Ends the process when that cannot be had.
void apply_condition();

}  // namespace verbatim::harness
