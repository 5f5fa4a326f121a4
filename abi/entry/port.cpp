// SPDX-License-Identifier: BSD-2-Clause
// Ports and their GID and P_Key tables. Any thread.
#include <verbatim/gid.h>

#include <algorithm>
#include <cstring>

#include "abi/entry/border.hpp"
#include "runtime/verbs/contexts.hpp"
#include "runtime/verbs/gid_choice.hpp"

namespace verbatim {
namespace {

/// The exported ibv_query_port and the programs of before 2018 know this much of ibv_port_attr.
constexpr std::size_t kOldPortAttrSize = offsetof(ibv_port_attr, port_cap_flags2);
static_assert(kOldPortAttrSize == 48);

int query_port_slot(ibv_context* context, std::uint8_t port, ibv_port_attr* attr,
                    std::size_t size) {
  ibv_port_attr all;
  const Status status = query_port(Context::from(context), port, all);
  if (!status.ok()) return as_errno(status);
  std::memset(static_cast<void*>(attr), 0, size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(size, sizeof all));
  return 0;
}

/// Lanes of a width code, tenths of Gbit/s of a speed code: PortInfo:LinkWidthActive,
/// LinkSpeedActive (IBTA 14.2.5.6).
std::uint64_t lanes_of(std::uint8_t width) noexcept {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

std::uint64_t lane_speed_of(std::uint32_t speed) noexcept {
  switch (speed) {
    case 1:
      return 25;
    case 2:
      return 50;
    case 4:
    case 8:
      return 100;
    case 16:
      return 140;
    case 32:
      return 250;
    case 64:
      return 500;
    case 128:
      return 1000;
    case 256:
      return 2000;
    default:
      return 0;
  }
}

}  // namespace

void fill_port_slots(verbs_context& slots) noexcept { slots.query_port = query_port_slot; }

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port_slot(context, port, reinterpret_cast<ibv_port_attr*>(attr), kOldPortAttrSize);
}

VBT_ENTRY int ibv_query_port_speed(ibv_context* context, std::uint32_t port,
                                   std::uint64_t* port_speed) {
  ibv_port_attr attr;
  const Status status = query_port(Context::from(context), port, attr);
  if (!status.ok()) return as_errno(status);
  const std::uint32_t code = attr.active_speed_ex != 0 ? attr.active_speed_ex : attr.active_speed;
  const std::uint64_t speed = lanes_of(attr.active_width) * lane_speed_of(code);
  if (speed == 0) return EOPNOTSUPP;
  *port_speed = speed;
  return 0;
}

VBT_ENTRY int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  ibv_gid_entry entry{};
  const Status status =
      query_gid(Context::from(context), port, static_cast<std::uint32_t>(index), entry);
  // Tables show their empty rows as zeroes here; only ibv_query_gid_ex tells the difference.
  if (!status.ok() && status.error().code != ENODATA) return as_minus_one(status);
  *gid = entry.gid;
  return 0;
}

VBT_ENTRY int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (flags != 0) return EOPNOTSUPP;
  ibv_gid_entry found;
  const Status status = query_gid(Context::from(context), port, index, found);
  if (!status.ok()) return as_errno(status);
  std::memset(static_cast<void*>(entry), 0, size);
  std::memcpy(static_cast<void*>(entry), &found, std::min(size, sizeof found));
  return 0;
}

VBT_ENTRY ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                       std::size_t max, std::uint32_t flags, std::size_t size) {
  if (flags != 0) return -EOPNOTSUPP;
  const Result<ssize_t> count = query_gid_table(Context::from(context), entries, max, size);
  return count.ok() ? count.value() : -count.error().code;
}

VBT_ENTRY int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  return as_minus_one(query_pkey(Context::from(context), port, index, *pkey));
}

VBT_ENTRY int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  const Result<int> index = find_pkey(Context::from(context), port, pkey);
  return index.ok() ? index.value() : as_minus_one(index.status());
}

VBT_ENTRY int vbt_pick_gid(ibv_context* context, std::uint8_t port, const ibv_gid* remote,
                           ibv_gid_entry* entry, std::size_t size) {
  if (entry == nullptr || size < offsetof(ibv_gid_entry, port_num)) return EINVAL;
  ibv_gid_entry found{};
  const Status status = pick_gid(Context::from(context), port, remote, found);
  if (!status.ok()) return as_errno(status);
  std::memset(static_cast<void*>(entry), 0, size);
  std::memcpy(static_cast<void*>(entry), &found, std::min(size, sizeof found));
  return 0;
}
