// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/completion.hpp"

#include <cerrno>

#include "runtime/base/make_nothrow.hpp"

namespace verbatim::siw {

int create_cq(verbatim::Context& plain, const ibv_cq_init_attr_ex& attr, CompChannel* channel,
              verbatim::Cq** out) noexcept {
  if (const int error = uverbs::check_wc_fields(attr, "siw")) return error;
  auto& context = static_cast<Context&>(plain);
  Cq* const cq = make_nothrow<Cq>();
  if (cq == nullptr) return ENOMEM;
  siw_uresp_create_cq reply{};
  int error = uverbs::create_cq(context, attr, channel, *cq, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = reply.num_cqe < attr.cqe
                ? EPROTO
                : cq->ring.map(context.channel.fd(), reply.cq_key, reply.num_cqe);
    // What the kernel has made goes with it; that it might not is nothing we could act on.
    if (error != 0) static_cast<void>(uverbs::destroy_cq(*cq));
  }
  if (error != 0) {
    destroy_nothrow(cq);
    return error;
  }
  cq->plain.cqe = static_cast<int>(cq->ring.capacity());
  wire_cursor(*cq);
  *out = cq;
  return 0;
}

int destroy_cq(verbatim::Cq& plain) noexcept {
  auto& cq = static_cast<Cq&>(plain);
  if (const int error = uverbs::destroy_cq(cq)) return error;
  destroy_nothrow(&cq);
  return 0;
}

}  // namespace verbatim::siw
