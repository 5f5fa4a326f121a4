// SPDX-License-Identifier: BSD-2-Clause
//
// A test on each device of the program's registry: the device open, with a protection domain, and
// the few objects that most sentences need, made in one line. One thread.
//
//   class Cq : public OnDevice {};
//   RUN_ON_EVERY_DEVICE(Cq);
//   TEST_P(Cq, HoldsWhatWasAskedFor) { SKIP_IF(lacks_srq()); ... }
//
// What a device lacks is skipped with the reason; the library's word about it is then expected.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/pair.hpp"

#define RUN_ON_EVERY_DEVICE(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(every_device()),             \
                           [](const ::testing::TestParamInfo<const char*>& tested) { \
                             return std::string(tested.param);                       \
                           })

/// `reason` is a std::string: empty when nothing is lacking.
#define SKIP_IF(reason) \
  if (const std::string why_not = (reason); !why_not.empty()) GTEST_SKIP() << why_not

namespace verbatim::harness {

const char* name_of(ibv_qp_type type);
const char* name_of(ibv_qp_state state);

/// Empty, or why the device cannot have queue pairs of this type.
std::string lacks_type(ibv_context* context, ibv_qp_type type);
/// The same by the device's name, for tests that open it elsewhere.
std::string lacks_type(const char* device, ibv_qp_type type);
/// Empty, or why the device has no shared receive queues.
std::string lacks_srq(const char* device);
/// What `what` answered, as the reason to skip: EOPNOTSUPP and ENOSYS are one, everything else is a
/// failure of the test.
std::string unless_unsupported(const char* what, int error);

/// An open device, and what a test makes on it.
class DeviceObjects {
 public:
  explicit DeviceObjects(const char* device) : session_(device) {}

  ibv_context* context() const { return session_.context.get(); }
  ibv_pd* pd() const { return session_.pd.get(); }
  const ibv_device_attr& attr() const { return session_.attr; }
  const ibv_port_attr& port() const { return session_.port; }
  Session& session() { return session_; }

  // Destroyed at the end, in the right order; null (with errno) when refused.
  ibv_comp_channel* channel();
  ibv_cq* cq(int depth = 64, ibv_comp_channel* with = nullptr, void* cookie = nullptr);
  ibv_comp_cntr* counter(ibv_comp_cntr_type type = IBV_COMP_CNTR_TYPE_WRS);
  ibv_qp* qp(ibv_qp_type type, ibv_cq* both, ibv_srq* from = nullptr);
  ibv_mr* mr(void* memory, std::size_t size, int access);
  ibv_srq* srq(std::uint32_t depth = 16, std::uint32_t max_sge = 1);
  ibv_xrcd* xrcd();
  ibv_ah* ah_to_self();

  /// Leads `qp` from RESET to `state`, connected to `peer` (itself when null). An errno.
  int lead(ibv_qp* qp, ibv_qp_state state, const ibv_qp* peer = nullptr);
  ibv_qp_state state(ibv_qp* qp);
  int to_state(ibv_qp* qp, ibv_qp_state state);
  /// Two connected queue pairs of the type, on one CQ that holds 256.
  std::pair<ibv_qp*, ibv_qp*> connected(ibv_qp_type type, ibv_cq* both);
  /// Exactly so many completions, or a failure.
  std::vector<ibv_wc> poll(ibv_cq* cq, std::size_t count);
  /// One signaled send of these bytes; the verb's errno.
  int post_send(ibv_qp* qp, std::uint64_t wr_id, const void* data, std::uint32_t length,
                std::uint32_t lkey, unsigned flags = IBV_SEND_SIGNALED);
  int post_receive(ibv_qp* qp, std::uint64_t wr_id, void* to, std::uint32_t length,
                   std::uint32_t lkey);
  /// Complaints of the library are expected from here on.
  void expect_complaints() { AllowedLog("verbatim: "); }

  /// Destroys it now instead of at the end; the verb's errno.
  int destroy(ibv_qp* qp);

 private:
  // In the order of their dependence: destroyed from the bottom.
  Session session_;
  std::deque<MrHandle> mrs_;
  std::deque<ChannelHandle> channels_;
  std::deque<CqHandle> cqs_;
  std::deque<CounterHandle> counters_;
  XrcdHandle xrcd_;
  std::deque<SrqHandle> srqs_;
  std::deque<AhHandle> ahs_;
  std::deque<QpHandle> qps_;
};

class OnDevice : public ::testing::TestWithParam<const char*>, protected DeviceObjects {
 protected:
  OnDevice() : DeviceObjects(GetParam()) {}
};

/// What a queue pair of this type needs to become `state`, with values that suit any device; the
/// mask. `peer` is whom it is connected to.
int attributes_for(ibv_qp_type type, ibv_qp_state state, const Session& session,
                   std::uint32_t peer_qpn, ibv_qp_attr& attr);
/// Of the kind ::ffff:1.2.3.4, by which RoCE v2 speaks IPv4.
bool is_mapped_ipv4(const ibv_gid& gid);
/// A path from the session's port to itself.
ibv_ah_attr path_to_self(const Session& session);

}  // namespace verbatim::harness
