// SPDX-License-Identifier: BSD-2-Clause
// RoCE v2 comes before the other types, a routable GID before a link-local one, and then the one
// that has more leading bits in common with the peer's. On Ethernet a GID of another family or
// scope than the peer's is never chosen.
//
// Families and scopes: RFC 4291, RFC 3927; RoCE v2 maps IPv4 addresses into GIDs as ::ffff:a.b.c.d
// (IBTA annex A17.4.5.1).
#include "runtime/verbs/gid_choice.hpp"

#include <bit>
#include <cerrno>
#include <cstring>

#include "runtime/verbs/contexts.hpp"

namespace verbatim {
namespace {

bool is_ipv4(const ibv_gid& gid) noexcept {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

bool is_link_local(const ibv_gid& gid) noexcept {
  if (is_ipv4(gid)) return gid.raw[12] == 169 && gid.raw[13] == 254;
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

/// Leading bits in which they agree.
std::uint32_t common_bits(const ibv_gid& a, const ibv_gid& b) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < sizeof a.raw; ++i) {
    const auto differ = static_cast<std::uint8_t>(a.raw[i] ^ b.raw[i]);
    if (differ != 0) return bits + static_cast<std::uint32_t>(std::countl_zero(differ));
    bits += 8;
  }
  return bits;
}

}  // namespace

std::uint32_t worth_of(const ibv_gid_entry& entry, const ibv_gid* remote) noexcept {
  // In this order: the version, the scope, the nearness.
  constexpr std::uint32_t kVersion2 = 1u << 16;
  constexpr std::uint32_t kRoutable = 1u << 15;
  std::uint32_t worth = 1;
  if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) worth += kVersion2;
  const bool link_local = is_link_local(entry.gid);
  // An InfiniBand subnet's default prefix is link-local in form, and is all there is.
  const bool ethernet = entry.gid_type != IBV_GID_TYPE_IB;
  if (!link_local) worth += kRoutable;
  if (remote == nullptr) return worth;
  if (ethernet) {
    if (is_ipv4(entry.gid) != is_ipv4(*remote)) return 0;
    if (link_local != is_link_local(*remote)) return 0;
  }
  return worth + common_bits(entry.gid, *remote);
}

Status pick_gid(Context& context, std::uint32_t port, const ibv_gid* remote,
                ibv_gid_entry& out) noexcept {
  ibv_port_attr attributes;
  if (const Status status = query_port(context, port, attributes); !status.ok()) return status;
  std::uint32_t best = 0;
  const auto look_at = [&](const ibv_gid_entry& entry) {
    const std::uint32_t worth = worth_of(entry, remote);
    if (worth <= best) return;
    best = worth;
    out = entry;
  };
  // Tables have a thousand rows, a few of them in use: those come in one call where the kernel has
  // one. A host with more than here is room for is asked row by row.
  constexpr std::size_t kUsualRows = 128;
  ibv_gid_entry rows[kUsualRows];
  const Result<ssize_t> used = query_gid_table(context, rows, kUsualRows, sizeof rows[0]);
  if (used.ok()) {
    for (ssize_t i = 0; i < used.value(); ++i)
      if (rows[i].port_num == port) look_at(rows[i]);
  } else if (used.error().code != EINVAL) {
    return used.error();
  }
  for (int index = 0; !used.ok() && index < attributes.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    const Status status = query_gid(context, port, static_cast<std::uint32_t>(index), entry);
    constexpr ibv_gid kEmpty{};
    if (!status.ok()) {
      if (status.error().code == ENODATA) continue;
      return status;
    }
    if (std::memcmp(&entry.gid, &kEmpty, sizeof kEmpty) != 0) look_at(entry);
  }
  return best == 0 ? Status(Error{ENODATA, "no GID leads there"}) : Status();
}

}  // namespace verbatim
