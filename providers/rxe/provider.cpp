// SPDX-License-Identifier: BSD-2-Clause
//
// What rxe can do, on one screen, beside what every kernel device can (kernel_slots.hpp). A slot that
// is named in neither answers EOPNOTSUPP.
#include "runtime/verbs/provider.hpp"

#include "providers/rxe/completion.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "providers/rxe/shared_receive.hpp"
#include "providers/uverbs/kernel_slots.hpp"
#include "providers/uverbs/made_queues.hpp"

namespace verbatim::rxe {
namespace {

/// 1 and 2 differ on machines of 32 bits alone.
constexpr uverbs::Driver kDriver{RDMA_DRIVER_RXE, "rxe", 1, 2};

/// The driver keeps a region that windows are bound to, and says EINVAL (man ibv_dereg_mr: EBUSY).
/// A handle of ours is no wrong argument in any other way.
int dereg_mr(verbatim::Mr& mr) noexcept {
  const int error = uverbs::dereg_mr(mr);
  return error == EINVAL ? EBUSY : error;
}

struct Rxe : uverbs::KernelSlots<rxe::Context, kDriver> {
  static constexpr const char* kName = "rxe";
  using Mr = rxe::Mr;
  using Cq = rxe::Cq;
  using Qp = rxe::Qp;

  static constexpr auto reg_mr = uverbs::reg_mr;
  static constexpr auto rereg_mr = uverbs::rereg_mr;
  static constexpr auto dereg_mr = rxe::dereg_mr;
  static constexpr auto alloc_mw = uverbs::alloc_mw;
  static constexpr auto bind_mw = rxe::bind_mw;
  static constexpr auto dealloc_mw = uverbs::dealloc_mw;
  static constexpr auto create_ah = rxe::create_ah;
  static constexpr auto destroy_ah = rxe::destroy_ah;

  static constexpr auto create_cq = rxe::create_cq;
  static constexpr auto resize_cq = rxe::resize_cq;
  static constexpr auto destroy_cq = uverbs::unmake_cq<rxe::Cq>;
  static constexpr auto req_notify_cq = rxe::req_notify_cq;
  static constexpr auto poll_cq = rxe::poll_cq;

  static constexpr auto create_srq = rxe::create_srq;
  static constexpr auto modify_srq = rxe::modify_srq;
  static constexpr auto destroy_srq = uverbs::unmake_srq<rxe::Srq>;
  static constexpr auto post_srq_recv = rxe::post_srq_recv;

  static constexpr auto create_qp = rxe::create_qp;
  static constexpr auto modify_qp = rxe::modify_qp;
  static constexpr auto query_qp = uverbs::query_qp;
  static constexpr auto destroy_qp = rxe::destroy_qp;
  static constexpr auto attach_mcast = uverbs::attach_mcast;
  static constexpr auto detach_mcast = uverbs::detach_mcast;
  static constexpr auto post_send = rxe::post_send;
  static constexpr auto post_recv = rxe::post_recv;
};

}  // namespace
}  // namespace verbatim::rxe

extern "C" [[gnu::visibility("default")]] const verbatim::ProviderTable verbs_provider_rxe;
constinit const verbatim::ProviderTable verbs_provider_rxe =
    verbatim::make_provider_table<verbatim::rxe::Rxe>();
