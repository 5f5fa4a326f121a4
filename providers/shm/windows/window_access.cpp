// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/windows/window_access.hpp"

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

bool opens_window(const Qp& qp, const Region& region) noexcept {
  if (!holder::is_of_other_kind(region.pd)) return false;  // another domain's region
  // What a message of ours ends, the peer may not have taken yet.
  for (const EndedKey& ended : qp.ended)
    if (ended.serial == region.serial) return false;
  return region.pd == (holder::kWindowOfPd | qp.link.remote_pd) ||
         region.pd == (holder::kWindowOfQp | load_relaxed(qp.own->dest_qpn));
}

bool opens_unusual(const Qp& qp, const Region& region) noexcept {
  return is_of_domain(region, qp.link.remote_pd) || opens_window(qp, region);
}

}  // namespace verbatim::shm
