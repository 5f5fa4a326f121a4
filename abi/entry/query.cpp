// SPDX-License-Identifier: BSD-2-Clause
// The extension of verbatim/query.h. Any thread.
#include <verbatim/query.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "abi/entry/border.hpp"
#include "runtime/verbs/memory_regions.hpp"

using namespace verbatim;

namespace {

/// Gives out as much of `ours` as the caller's structure takes; what it has besides is cleared.
template <class T>
void hand_out(T* theirs, std::size_t size, const T& ours) noexcept {
  std::memset(static_cast<void*>(theirs), 0, size);
  std::memcpy(static_cast<void*>(theirs), &ours, std::min(size, sizeof ours));
}

}  // namespace

VBT_ENTRY int vbt_query_mr(ibv_mr* mr, vbt_mr_attr* attr, std::size_t size) {
  if (mr == nullptr || attr == nullptr || size < offsetof(vbt_mr_attr, address)) return EINVAL;
  vbt_mr_attr all{};
  all.peers = attr->peers;
  all.peer_room = attr->peers == nullptr ? 0 : attr->peer_room;
  const bool wants_placement = size >= offsetof(vbt_mr_attr, node_count);
  if (wants_placement) {
    all.nodes = attr->nodes;
    all.node_room = attr->nodes == nullptr ? 0 : attr->node_room;
  }
  const Status status = query_mr(Mr::from(mr), all, wants_placement);
  if (status.ok()) hand_out(attr, size, all);
  return as_errno(status);
}

VBT_ENTRY int vbt_query_ah(ibv_ah* ah, ibv_ah_attr* attr, std::size_t size) {
  if (ah == nullptr || attr == nullptr || size < sizeof *attr) return EINVAL;
  hand_out(attr, size, Ah::from(ah).attr);
  return 0;
}
