// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/shared_receive.hpp"

#include <algorithm>
#include <cerrno>

#include "providers/uverbs/made_queues.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::rxe {

int create_srq(verbatim::Context& context, const ibv_srq_init_attr_ex& attr,
               verbatim::Srq** out) noexcept {
  Srq* srq = nullptr;
  const auto map = [](Srq& made, const rxe_create_srq_resp& reply, int fd) noexcept {
    return made.ring.map(fd, reply.mi, sizeof(ReceiveElement));
  };
  if (const int error = uverbs::make_srq<Srq, rxe_create_srq_resp>(context, attr, &srq, map))
    return error;
  srq->max_sge =
      std::min(srq->attributes.max_sge, sges_in<ReceiveElement>(srq->ring.element_size()));
  *out = srq;
  return 0;
}

int modify_srq(verbatim::Srq& plain, ibv_srq_attr& attr, int mask) noexcept {
  auto& srq = static_cast<Srq&>(plain);
  // The kernel moves what is in the ring to another one: nobody may post to it meanwhile.
  const LockGuard guard(srq.lock);
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  mminfo place{};
  const rxe_modify_srq_cmd request{reinterpret_cast<std::uintptr_t>(&place)};
  const kernel::DriverData driver{&request, sizeof request, nullptr, 0};
  if (const int error = uverbs::modify_srq(srq, attr, mask, driver)) return error;
  if (!resizes) return 0;
  return srq.ring.map(uverbs::context_of(srq).command_channel.fd(), place, sizeof(ReceiveElement));
}

int create_ah(Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept {
  // Its packets are routed by GIDs; without one there is nowhere to send them.
  if (attr.is_global == 0) return EINVAL;
  Ah* const ah = make_nothrow<Ah>();
  if (ah == nullptr) return ENOMEM;
  rxe_create_ah_resp reply{};
  if (const int error = uverbs::create_ah(pd, attr, *ah, kernel::DriverData::reply(reply))) {
    destroy_nothrow(ah);
    return error;
  }
  if (reply.ah_num == 0) {
    // Before 5.15 sends carried the whole path, resolved by user space.
    log_refusal("rxe: this kernel's driver has no address handles of its own");
    static_cast<void>(uverbs::destroy_ah(*ah));
    destroy_nothrow(ah);
    return EOPNOTSUPP;
  }
  ah->number = reply.ah_num;
  *out = ah;
  return 0;
}

int destroy_ah(verbatim::Ah& plain) noexcept {
  if (const int error = uverbs::destroy_ah(plain)) return error;
  destroy_nothrow(static_cast<Ah*>(&plain));
  return 0;
}

}  // namespace verbatim::rxe
