// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/completion.hpp"

#include "providers/uverbs/made_queues.hpp"

namespace verbatim::rxe {

int create_cq(verbatim::Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept {
  Cq* cq = nullptr;
  const auto map = [](Cq& made, const rxe_create_cq_resp& reply, int fd) noexcept {
    return made.ring.map(fd, reply.mi, sizeof(ib_uverbs_wc));
  };
  if (const int error =
          uverbs::make_cq<Cq, rxe_create_cq_resp>("rxe", context, attr, channel, &cq, map))
    return error;
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
  return cq.ring.map(uverbs::context_of(cq).command_channel.fd(), reply.mi, sizeof(ib_uverbs_wc));
}

int req_notify_cq(ibv_cq* plain, int solicited_only) noexcept {
  return uverbs::req_notify_cq(static_cast<Cq&>(verbatim::Cq::from(plain)), solicited_only != 0);
}

}  // namespace verbatim::rxe
