// SPDX-License-Identifier: BSD-2-Clause
//
// What siw can do, on one screen, beside what every kernel device can (kernel_slots.hpp). A slot that
// is named in neither answers EOPNOTSUPP.
#include "runtime/verbs/provider.hpp"

#include "providers/siw/completion.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/memory.hpp"
#include "providers/siw/queue_pairs.hpp"
#include "providers/siw/shared_receive.hpp"
#include "providers/uverbs/kernel_slots.hpp"
#include "providers/uverbs/made_queues.hpp"

namespace verbatim::siw {
namespace {

constexpr uverbs::Driver kDriver{RDMA_DRIVER_SIW, "siw", SIW_ABI_VERSION, SIW_ABI_VERSION};

struct Siw : uverbs::KernelSlots<siw::Context, kDriver, siw_uresp_alloc_ctx> {
  static constexpr const char* kName = "siw";
  using Mr = siw::Mr;
  using Cq = siw::Cq;
  using Qp = siw::Qp;

  static constexpr auto reg_mr = siw::reg_mr;
  static constexpr auto dereg_mr = uverbs::dereg_mr;

  static constexpr auto create_cq = siw::create_cq;
  static constexpr auto destroy_cq = uverbs::unmake_cq<siw::Cq>;
  static constexpr auto req_notify_cq = siw::req_notify_cq;
  static constexpr auto poll_cq = siw::poll_cq;

  static constexpr auto create_srq = siw::create_srq;
  static constexpr auto modify_srq = siw::modify_srq;
  static constexpr auto destroy_srq = uverbs::unmake_srq<siw::Srq>;
  static constexpr auto post_srq_recv = siw::post_srq_recv;

  static constexpr auto create_qp = siw::create_qp;
  static constexpr auto modify_qp = siw::modify_qp;
  static constexpr auto query_qp = siw::query_qp;
  static constexpr auto destroy_qp = siw::destroy_qp;
  static constexpr auto post_send = siw::post_send;
  static constexpr auto post_recv = siw::post_recv;
};

}  // namespace
}  // namespace verbatim::siw

extern "C" [[gnu::visibility("default")]] const verbatim::ProviderTable verbs_provider_siw;
constinit const verbatim::ProviderTable verbs_provider_siw =
    verbatim::make_provider_table<verbatim::siw::Siw>();
