// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/shared_receive.hpp"

#include <algorithm>
#include <cerrno>

#include "providers/uverbs/made_queues.hpp"

namespace verbatim::siw {

int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept {
  Srq* srq = nullptr;
  const auto map = [&attr](Srq& made, const siw_uresp_create_srq& reply, int fd) noexcept {
    return reply.num_rqe < attr.attr.max_wr ? EPROTO
                                            : made.ring.map(fd, reply.srq_key, reply.num_rqe);
  };
  if (const int error = uverbs::make_srq<Srq, siw_uresp_create_srq>(context, attr, &srq, map))
    return error;
  srq->max_sge = std::min(srq->attributes.max_sge, kMostSges);
  *out = srq;
  return 0;
}

/// The limit; the driver makes no queue longer (EOPNOTSUPP).
int modify_srq(verbatim::Srq& srq, ibv_srq_attr& attr, int mask) noexcept {
  return uverbs::modify_srq(static_cast<Srq&>(srq), attr, mask, {});
}

}  // namespace verbatim::siw
