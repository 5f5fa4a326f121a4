// SPDX-License-Identifier: BSD-2-Clause
// The extension of verbatim/map.h. Any thread.
#include <verbatim/map.h>

#include "abi/entry/border.hpp"
#include "runtime/verbs/dependency.hpp"

using namespace verbatim;

VBT_ENTRY int vbt_map_remote(ibv_qp* qp, std::uint32_t rkey, std::uint64_t address,
                             std::size_t length, unsigned access, void** mapped) {
  constexpr unsigned kRights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (qp == nullptr || mapped == nullptr || length == 0 || access == 0 || (access & ~kRights) != 0)
    return EINVAL;
  if (qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC) return EOPNOTSUPP;
  Qp& ours = Qp::from(qp);
  return table_of(ours).map_remote(ours, rkey, address, length, access, mapped);
}
