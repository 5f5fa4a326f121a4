// SPDX-License-Identifier: BSD-2-Clause
// Queues of which a driver shows user space the ring: made here and in the kernel, or not at all.
// What differs between drivers is the reply, and how the ring that it names is mapped. Templates for
// the slots of a provider; any thread.
#pragma once

#include <cerrno>

#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/software/copying_cursor.hpp"

namespace verbatim::uverbs {

/// create(object, driver's part of the command): 0 or errno. map(object, reply, descriptor of the node): 0 or
/// errno, and then there is nothing to undo. destroy(object) is the kernel's half of it.
template <class Object, class Reply, class Create, class Map, class Destroy>
int make_mapped(Context& context, Object** out, Create create, Map map, Destroy destroy) noexcept {
  Object* const object = make_nothrow<Object>();
  if (object == nullptr) return ENOMEM;
  Reply reply{};
  int error = create(*object, kernel::DriverData::reply(reply));
  if (error == 0) {
    error = map(*object, reply, context.command_channel.fd());
    // What the kernel has made goes with it; that it might not is nothing we could act on.
    if (error != 0) static_cast<void>(destroy(*object));
  }
  if (error != 0) {
    destroy_nothrow(object);
    return error;
  }
  *out = object;
  return 0;
}

/// `Cq` derives from uverbs::Cq; map() as for make_mapped().
template <class Cq, class Reply, class Map>
int make_cq(const char* driver, verbatim::Context& plain, const ibv_cq_init_attr_ex& attr,
            CompChannel* channel, Cq** out, Map map) noexcept {
  if (const int error = check_wc_fields(attr, driver)) return error;
  auto& context = static_cast<Context&>(plain);
  return make_mapped<Cq, Reply>(
      context, out,
      [&](Cq& cq, const kernel::DriverData& data) noexcept {
        return create_cq(context, attr, channel, cq, data);
      },
      map, destroy_cq);
}

/// `Srq` derives from uverbs::Srq; map() as for make_mapped().
template <class Srq, class Reply, class Map>
int make_srq(verbatim::Context& plain, const ibv_srq_init_attr_ex& attr, Srq** out,
             Map map) noexcept {
  auto& context = static_cast<Context&>(plain);
  const int error = make_mapped<Srq, Reply>(
      context, out,
      [&](Srq& srq, const kernel::DriverData& data) noexcept {
        return create_srq(context, attr, srq, data);
      },
      map, destroy_srq);
  // Drivers tell what was asked, and make the ring as large as its slots come.
  if (error == 0) (*out)->attributes.max_wr = (*out)->ring.capacity();
  return error;
}

/// `Qp` derives from uverbs::Qp and has a doorbell; map() as for make_mapped(), and it says in `attr` what the
/// rings hold.
template <class Qp, class Reply, class Map>
int make_qp(Context& context, ibv_qp_init_attr_ex& attr, Qp** out, Map map) noexcept {
  const int error = make_mapped<Qp, Reply>(
      context, out,
      [&](Qp& qp, const kernel::DriverData& data) noexcept {
        return create_qp(context, attr, qp, data);
      },
      map, destroy_qp);
  if (error == 0)
    (*out)->doorbell = kernel::make_doorbell((*out)->plain.handle, (*out)->doorbell_reply);
  return error;
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
