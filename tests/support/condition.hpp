// SPDX-License-Identifier: BSD-2-Clause
//
// A child that gets less from the system than its parent. Named in the child's environment, applied
// before it does anything:
//
//   {kCondition, "deny membarrier memfd_create"}   EPERM, as a container's filter answers
//   {kCondition, "limit nofile 40"}                also as, fsize and memlock, in bytes; with
//                                                  nofile and memlock go the capabilities that
//                                                  lift them
//   {kCondition, "mount full /some/folder"}        also readonly and empty; for root
//   {kCondition, "user 65534"}                     without capabilities; for root
//   {kCondition, "lock everything"}                by mlockall, what is there and what is to come
//   {kCondition, "lock future 40000000"}           what is to come, under "limit memlock 40000000"
//   {kCondition, "children elsewhere"}             its children are in another pid namespace
//   {kCondition, "group /sys/fs/cgroup/..."}       in that control group
#pragma once

namespace verbatim::harness {

inline constexpr char kCondition[] = "VBT_CONDITION";

/// What the environment asks for, if anything. Ends the process when that cannot be had.
void apply_condition();

}  // namespace verbatim::harness
