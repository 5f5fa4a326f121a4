// SPDX-License-Identifier: BSD-2-Clause
//
// The judgement of a remote key (runtime/verbs/software/key_record.hpp), from both ends of a
// connection: the requester's, who reads its peer's table, and the responder's, whose own it is.
#pragma once

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/windows/window_access.hpp"

namespace verbatim::shm {

/// Requester: may requests of `qp` name this memory of its peer's? REQUIRES: attached, the send lock.
struct OpenToRequests {
  const Qp& qp;
  [[gnu::always_inline]] bool operator()(const Region& region) const noexcept {
    return region.pd == qp.link.remote_pd || opens_unusual(qp, region);
  }
};

/// Responder: may those of its peer name this memory of ours?
struct OpenToPeer {
  const Qp& qp;
  bool operator()(const Region& region) const noexcept {
    return holder::is_open_to(region.pd, qp.pd_number, qp.own->qpn);
  }
};

inline RegionView regions_of_peer(const Qp& qp) noexcept {
  return {qp.link.remote_regions, qp.link.remote_region_capacity};
}
inline RegionView own_regions(const Qp& qp) noexcept {
  return {qp.own_regions, qp.own_region_capacity};
}

[[gnu::always_inline]] inline KeyFault authorize_remote(const Qp& qp, const KeyUse& use,
                                                        Region& region,
                                                        std::uint64_t& offset) noexcept {
  return authorize(regions_of_peer(qp), use, OpenToRequests{qp}, region, offset);
}

}  // namespace verbatim::shm
