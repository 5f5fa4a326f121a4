// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/ud/datagram_verdict.hpp"

#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/ud_role.hpp"

namespace verbatim::shm {
namespace {

/// The receive that is next refuses a message of so many bytes as its sender says, by what senders
/// are shown of it. Also while there is none: it is asked again when one is posted.
bool is_borne_out(Srq& srq, std::uint64_t status, std::uint64_t bytes) noexcept {
  LockGuard<BiasedLock> guard(srq.lock);
  const std::uint64_t next = srq.own->taken.load(std::memory_order_relaxed);
  if (next == srq.posted) return true;
  const auto credit = static_cast<std::uint32_t>(
      srq.store.credits[srq.store.at(next)].load(std::memory_order_relaxed));
  const ibv_wc_status refusal =
      (credit & Credit::kBadKey) != 0 ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR;
  return status == refusal && bytes > (credit & Credit::kLengthMask);
}

}  // namespace

Verdict judge_datagram(Qp& endpoint, std::uint64_t index, SlotKind kind, std::uint64_t h,
                       std::uint64_t length, std::uint64_t start) noexcept {
  if (header::invalidates(h) || (header::flags(h) & header::kWriteImmediate) != 0)
    return Verdict::kLie;
  switch (kind) {
    case SlotKind::kInline:
      return length <= Slot::kInlineBytes ? Verdict::kSound : Verdict::kLie;
    case SlotKind::kLines:
      return length <= kMostInLines ? Verdict::kSound : Verdict::kLie;
    case SlotKind::kWhole:
      return length <= kMaxDatagram ? Verdict::kSound : Verdict::kLie;
    case SlotKind::kFault: {
      const bool is_known = length == IBV_WC_LOC_LEN_ERR || length == IBV_WC_LOC_PROT_ERR;
      // Who is refused has put nothing in that a receive could have been taken for.
      if (!is_known || start > kMaxDatagram || held_for(endpoint, index) != nullptr)
        return Verdict::kLie;
      return is_borne_out(*endpoint.srq, length, start + endpoint.headroom) ? Verdict::kSound
                                                                            : Verdict::kUnfounded;
    }
    default:
      return Verdict::kLie;
  }
}

}  // namespace verbatim::shm
