// SPDX-License-Identifier: BSD-2-Clause
// Queues of which a driver shows user space the ring: made here and in the kernel, or not at all.
// What differs between drivers is the reply, and how the ring that it names is mapped. Templates for
// the slots of a provider; any thread.
#pragma once

#include <cerrno>

#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/software/copying_cursor.hpp"

namespace verbatim::uverbs {

/// `Cq` derives from uverbs::Cq. map(cq, reply, descriptor of the node): 0 or errno, and then there
/// is nothing to undo.
template <class Cq, class Reply, class Map>
int make_cq(const char* driver, verbatim::Context& plain, const ibv_cq_init_attr_ex& attr,
            CompChannel* channel, Cq** out, Map map) noexcept {
  if (const int error = check_wc_fields(attr, driver)) return error;
  auto& context = static_cast<Context&>(plain);
  Cq* const cq = make_nothrow<Cq>();
  if (cq == nullptr) return ENOMEM;
  Reply reply{};
  int error = create_cq(context, attr, channel, *cq, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = map(*cq, reply, context.command_channel.fd());
    // What the kernel has made goes with it; that it might not is nothing we could act on.
    if (error != 0) static_cast<void>(destroy_cq(*cq));
  }
  if (error != 0) {
    destroy_nothrow(cq);
    return error;
  }
  *out = cq;
  return 0;
}

/// `Srq` derives from uverbs::Srq; map() as for make_cq().
template <class Srq, class Reply, class Map>
int make_srq(verbatim::Context& plain, const ibv_srq_init_attr_ex& attr, Srq** out,
             Map map) noexcept {
  auto& context = static_cast<Context&>(plain);
  Srq* const srq = make_nothrow<Srq>();
  if (srq == nullptr) return ENOMEM;
  Reply reply{};
  int error = create_srq(context, attr, *srq, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = map(*srq, reply, context.command_channel.fd());
    if (error != 0) static_cast<void>(destroy_srq(*srq));
  }
  if (error != 0) {
    destroy_nothrow(srq);
    return error;
  }
  // Drivers tell what was asked, and make the ring as large as its slots come.
  srq->attributes.max_wr = srq->ring.capacity();
  *out = srq;
  return 0;
}

template <class Cq>
int unmake_cq(verbatim::Cq& plain) noexcept {
  auto& cq = static_cast<Cq&>(plain);
  if (const int error = destroy_cq(cq)) return error;
  destroy_nothrow(&cq);
  return 0;
}

template <class Srq>
int unmake_srq(verbatim::Srq& plain) noexcept {
  auto& srq = static_cast<Srq&>(plain);
  if (const int error = destroy_srq(srq)) return error;
  destroy_nothrow(&srq);
  return 0;
}

}  // namespace verbatim::uverbs
