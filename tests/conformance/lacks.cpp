// SPDX-License-Identifier: BSD-2-Clause
//
// What the devices that the suite runs over lack, by name: a sentence is skipped there for these
// reasons only. Otherwise a verb that began to be refused would be a test less, and no failure.
// Other drivers' devices may lack what they say.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

struct Lack {
  std::string_view device;  ///< how its name begins
  std::string_view what;    ///< stands in the reason
  KernelVersion before = kNoLinux;
  KernelVersion since = kFirstLinux;
};

constexpr Lack kLacks[] = {
    {"shm", "tag matching"},
    {"shm", "an XRC receive queue pair has no queues"},
    {"shm", "the port's address is none of IPv4"},
    // With VERBATIM_SHM_LINK=ethernet.
    {"shm", "packets of Ethernet have no service level"},
    {"shm", "the port's address is one of IPv4"},
    // Of the witness.
    {"packet", "IBV_DEVICE_SRQ_RESIZE"},
    {"packet", "UC queue pairs"},
    {"packet", "XRC domains"},
    {"packet", "memory windows of type 2"},
    {"packet", "tag matching"},
    {"packet", "rarer fields of completions"},
    {"packet", "completion_timestamp_mask is 0"},
    {"packet", "the port's address is none of IPv4"},
    // Of rxe, on Linux 6.1 and 6.12.
    {"rxe", "vbt_map_remote"},
    {"rxe", "completion counters"},
    {"rxe", "XRC"},
    {"rxe", "thread domains"},
    {"rxe", "parent domains"},
    {"rxe", "device memory"},
    {"rxe", "ibv_alloc_null_mr"},
    {"rxe", "ibv_rereg_mr"},
    {"rxe", "ON_DEMAND"},
    {"rxe", "rarer fields of completions"},
    {"rxe", "completion_timestamp_mask is 0"},
    {"rxe", "ibv_query_rt_values_ex"},
    {"rxe", "ibv_modify_cq"},
    {"rxe", "tag matching"},
    {"rxe", "ATOMIC WRITE", kLinux612},
    {"rxe", "FLUSH", kLinux612},
    {"rxe", "IBV_ACCESS_ZERO_BASED", kNoLinux, kLinux612},
    {"rxe", "does not raise IBV_EVENT_COMM_EST"},
    {"rxe", "packets of Ethernet have no service level"},
    {"rxe", "the port's address is one of IPv4"},
    {"rxe", "no Ethernet address belongs to the port's own GID"},
};

/// Where the driver does otherwise than is specified: by name in quirks.hpp.
constexpr std::string_view kQuirk = "a quirk of the driver";

bool is_known(std::string_view device, std::string_view reason) {
  const KernelVersion kernel = kernel_version();
  const auto is_of = [&](const Lack& lack) { return device.starts_with(lack.device); };
  if (reason.find(kQuirk) != reason.npos) return true;
  if (std::ranges::none_of(kLacks, is_of)) return true;
  return std::ranges::any_of(kLacks, [&](const Lack& lack) {
    return is_of(lack) && kernel < lack.before && !(kernel < lack.since) &&
           reason.find(lack.what) != reason.npos;
  });
}

class JudgeSkips : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const std::string_view name = test.name();
    const std::string_view device = name.substr(std::min(name.find('/') + 1, name.size()));
    for (int i = 0; i < test.result()->total_part_count(); ++i) {
      const ::testing::TestPartResult& part = test.result()->GetTestPartResult(i);
      if (part.skipped() && !is_known(device, part.message()))
        ADD_FAILURE() << "skipped, and not for what the device is known to lack (lacks.cpp): "
                      << part.message();
    }
  }
};

class JudgesSkips : public ::testing::Environment {
  // Listeners hear the end of a test last one first: ours before the printer.
  void SetUp() override { ::testing::UnitTest::GetInstance()->listeners().Append(new JudgeSkips); }
};

[[maybe_unused]] const ::testing::Environment* const judges_skips =
    ::testing::AddGlobalTestEnvironment(new JudgesSkips);

}  // namespace
}  // namespace verbatim::harness
