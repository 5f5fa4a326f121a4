// SPDX-License-Identifier: BSD-2-Clause
// The other side of siw's queues, for tests: memory that a descriptor maps, a kernel's end that
// takes requests and writes completions as the driver does, and a doorbell that answers what the
// test says. Commands are answered by tests/support/fake_uverbs.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "providers/siw/objects.hpp"
#include "runtime/verbs/provider.hpp"
#include "tests/support/fake_uverbs.hpp"

extern "C" const verbatim::ProviderTable verbs_provider_siw;

namespace verbatim::siw_test {

struct FakeSystem : uverbs::System {
  FakeSystem();
  fake::Uverbs inner{fake::Age::kMethods};
  const uverbs::System& rest() const { return inner; }
  std::atomic<int> rung{0};
  std::atomic<int> bell{0};                  ///< what the doorbell answers
  std::vector<int> bells;                    ///< ... before that, one by one
  std::vector<std::uint32_t> rung_by_ioctl;  ///< of which queue pairs
  std::vector<ib_uverbs_modify_qp> led;      ///< what MODIFY_QP was asked for
  std::vector<siw_ureq_reg_mr> regions;      ///< what REG_MR was told by the driver's user side
  std::uint8_t reads = 4;                    ///< what QUERY_QP tells that we may ask for
  int asked = 0;                             ///< how often QUERY_QP was
};

/// An open context whose queues lie in a file of the test's.
class FakeSiw {
 public:
  static constexpr std::size_t kPage = 4096;
  enum Place : std::uint64_t {
    kSends = 0,
    kReceives = kPage,
    kShared = 2 * kPage,
    kCompletions = 3 * kPage
  };

  FakeSiw();
  ~FakeSiw();
  FakeSiw(const FakeSiw&) = delete;
  FakeSiw& operator=(const FakeSiw&) = delete;

  /// As the runtime makes them. An errno, or 0 and the object.
  int make_cq(siw_uresp_create_cq reply = {9, 8, kCompletions}, std::uint32_t cqe = 5);
  int make_qp(siw_uresp_create_qp reply = {0x11, 8, 4, 0, kSends, kReceives},
              std::uint64_t send_ops = 0);
  int make_srq(siw_uresp_create_srq reply = {4, 0, kShared});
  void connect();  ///< the kernel is in RTS
  [[nodiscard]] int poll(int entries = 8);

  siw_sqe& sent(unsigned i) { return reinterpret_cast<siw_sqe*>(memory_ + kSends)[i]; }
  siw_rqe& received(unsigned i) { return reinterpret_cast<siw_rqe*>(memory_ + kReceives)[i]; }
  siw_rqe& shared(unsigned i) { return reinterpret_cast<siw_rqe*>(memory_ + kShared)[i]; }
  siw_cqe& completion(unsigned i) { return reinterpret_cast<siw_cqe*>(memory_ + kCompletions)[i]; }
  siw_cq_ctrl& control() { return reinterpret_cast<siw_cq_ctrl&>(completion(8)); }
  /// The kernel completes: false when the queue is full.
  bool complete(std::uint64_t id, unsigned opcode, unsigned status = SIW_WC_SUCCESS,
                std::uint64_t qp_number = 0x11);

  FakeSystem system;
  Device device;
  siw::Context context;
  ibv_cq_init_attr_ex cq_attr{};
  ibv_qp_init_attr_ex qp_attr{};
  Pd* pd = nullptr;
  siw::Cq* cq = nullptr;
  siw::Qp* qp = nullptr;
  siw::Srq* srq = nullptr;
  ibv_wc wc[16] = {};

 private:
  unsigned char* memory_ = nullptr;
  unsigned completed_ = 0;
};

/// A request of one buffer.
struct Request {
  explicit Request(ibv_wr_opcode opcode, std::uint32_t length = 16);
  ibv_sge sge{};
  ibv_send_wr wr{};
};
/// ... and its posting: what was returned, and where it stopped.
struct Posted {
  int error;
  ibv_send_wr* bad;
};
Posted post(FakeSiw& fake, ibv_send_wr& wr);

}  // namespace verbatim::siw_test
