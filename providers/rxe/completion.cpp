// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/completion.hpp"

#include <cerrno>

#include "runtime/base/make_nothrow.hpp"

namespace verbatim::rxe {

int create_cq(verbatim::Context& plain, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept {
  if (const int error = uverbs::check_wc_fields(attr, "rxe")) return error;
  auto& context = static_cast<Context&>(plain);
  Cq* const cq = make_nothrow<Cq>();
  if (cq == nullptr) return ENOMEM;
  rxe_create_cq_resp reply{};
  int error = uverbs::create_cq(context, attr, channel, *cq, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = cq->ring.map(context.channel.fd(), reply.mi, sizeof(ib_uverbs_wc));
    // What the kernel has made goes with it; that it might not is nothing we could act on.
    if (error != 0) static_cast<void>(uverbs::destroy_cq(*cq));
  }
  if (error != 0) {
    destroy_nothrow(cq);
    return error;
  }
  wire_cursor(*cq);
  *out = cq;
  return 0;
}

int resize_cq(verbatim::Cq& plain, int cqe) noexcept {
  auto& cq = static_cast<Cq&>(plain);
  // The kernel moves what is in the ring to another one: nobody may take from it meanwhile.
  const LockGuard guard(cq.lock);
  rxe_resize_cq_resp reply{};
  if (const int error = uverbs::resize_cq(cq, cqe, kernel::DriverData::reply(reply))) return error;
  return cq.ring.map(uverbs::context_of(cq).channel.fd(), reply.mi, sizeof(ib_uverbs_wc));
}

int destroy_cq(verbatim::Cq& plain) noexcept {
  auto& cq = static_cast<Cq&>(plain);
  if (const int error = uverbs::destroy_cq(cq)) return error;
  destroy_nothrow(&cq);
  return 0;
}

int req_notify_cq(ibv_cq* plain, int solicited_only) noexcept {
  return uverbs::req_notify_cq(static_cast<Cq&>(verbatim::Cq::from(plain)), solicited_only != 0);
}

}  // namespace verbatim::rxe
