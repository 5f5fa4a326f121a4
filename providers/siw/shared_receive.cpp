// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/shared_receive.hpp"

#include <algorithm>
#include <cerrno>

#include "runtime/base/make_nothrow.hpp"

namespace verbatim::siw {

int create_srq(verbatim::Context& plain, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept {
  auto& context = static_cast<Context&>(plain);
  Srq* const srq = make_nothrow<Srq>();
  if (srq == nullptr) return ENOMEM;
  siw_uresp_create_srq reply{};
  int error = uverbs::create_srq(context, attr, *srq, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = reply.num_rqe < attr.attr.max_wr
                ? EPROTO
                : srq->ring.map(context.channel.fd(), reply.srq_key, reply.num_rqe);
    if (error != 0) static_cast<void>(uverbs::destroy_srq(*srq));
  }
  if (error != 0) {
    destroy_nothrow(srq);
    return error;
  }
  srq->attributes.max_wr = srq->ring.capacity();
  srq->max_sge = std::min(srq->attributes.max_sge, kMostSges);
  *out = srq;
  return 0;
}

/// The limit; the driver makes no queue longer (EOPNOTSUPP).
int modify_srq(verbatim::Srq& srq, ibv_srq_attr& attr, int mask) noexcept {
  return uverbs::modify_srq(static_cast<Srq&>(srq), attr, mask, {});
}

int destroy_srq(verbatim::Srq& plain) noexcept {
  auto& srq = static_cast<Srq&>(plain);
  if (const int error = uverbs::destroy_srq(srq)) return error;
  destroy_nothrow(&srq);
  return 0;
}

}  // namespace verbatim::siw
