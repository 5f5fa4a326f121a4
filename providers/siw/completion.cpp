// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/completion.hpp"

#include <cerrno>

#include "providers/uverbs/made_queues.hpp"

namespace verbatim::siw {

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept {
  Cq* cq = nullptr;
  const auto map = [&attr](Cq& made, const siw_uresp_create_cq& reply, int fd) noexcept {
    return reply.num_cqe < attr.cqe ? EPROTO : made.ring.map(fd, reply.cq_key, reply.num_cqe);
  };
  if (const int error =
          uverbs::make_cq<Cq, siw_uresp_create_cq>("siw", context, attr, channel, &cq, map))
    return error;
  cq->plain.cqe = static_cast<int>(cq->ring.capacity());
  wire_cursor(*cq);
  *out = cq;
  return 0;
}

}  // namespace verbatim::siw
