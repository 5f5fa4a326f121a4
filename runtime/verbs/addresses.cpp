// SPDX-License-Identifier: BSD-2-Clause
// The path back to a sender is read out of the GRH of its message, or of the IPv4 header that RoCE
// v2 delivers in the same 40 bytes. The MAC of a multicast or link-local GID is computed here; for
// any other the provider is asked.
//
// GRH: IBTA 8.3, 11.4.2.1 (UD receive buffers); RoCE v2: annex A17; addresses from GIDs: RFC 4291
// (EUI-64), RFC 2464 and 1112 (multicast).
#include "runtime/verbs/addresses.hpp"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/contexts.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim {
namespace {

constexpr const char* kFromWc = "ibv_init_ah_from_wc";

/// Where a message came from and went to, whatever header said so.
struct Route {
  ibv_gid source;
  ibv_gid destination;
  std::uint32_t type;  ///< ibv_gid_type
  std::uint32_t flow_label;
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
};

ibv_gid mapped_from_ipv4(const unsigned char* address) noexcept {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, address, 4);
  return gid;
}

Route read_route(const ibv_grh& grh, bool ethernet) noexcept {
  constexpr std::uint32_t kFlowLabelMask = 0xfffff;
  constexpr std::uint8_t kNextHeaderUdp = 17;
  // The IPv4 header of RoCE v2, when there is one, ends where the IPv6 one would.
  constexpr std::size_t kIpv4At = 20;
  const std::uint32_t first = ntohl(grh.version_tclass_flow);
  unsigned char bytes[sizeof(ibv_grh)];
  std::memcpy(bytes, &grh, sizeof bytes);
  const unsigned char* const ipv4 = bytes + kIpv4At;
  if (ethernet && first >> 28 != 6 && ipv4[0] >> 4 == 4) {
    return {mapped_from_ipv4(ipv4 + 12),
            mapped_from_ipv4(ipv4 + 16),
            IBV_GID_TYPE_ROCE_V2,
            0,
            ipv4[8],
            ipv4[1]};
  }
  std::uint32_t type = IBV_GID_TYPE_IB;
  if (ethernet) type = grh.next_hdr == kNextHeaderUdp ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
  return {grh.sgid,      grh.dgid,
          type,          first & kFlowLabelMask,
          grh.hop_limit, static_cast<std::uint8_t>(first >> 20 & 0xff)};
}

/// The local table entry that the message was sent to: answers leave by the same one.
Result<int> find_gid(Context& context, std::uint32_t port, int table_length, const ibv_gid& gid,
                     std::uint32_t type) noexcept {
  for (int index = 0; index < table_length; ++index) {
    ibv_gid_entry entry{};
    const Status status = query_gid(context, port, static_cast<std::uint32_t>(index), entry);
    if (!status.ok()) {
      if (status.error().code == ENODATA) continue;
      return status.error();
    }
    if (entry.gid_type == type && std::memcmp(&entry.gid, &gid, sizeof gid) == 0) return index;
  }
  return refuse(ENOENT, kFromWc, "the message's destination GID is not in the port's table");
}

bool is_link_local(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

}  // namespace

Result<Ah*> create_ah(Pd& pd, const ibv_ah_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_create_ah";
  constexpr std::uint8_t kHighestServiceLevel = 15;
  Context& context = context_of(pd);
  if (attr.port_num < 1 || attr.port_num > context.port_count) {
    return refuse(EINVAL, kVerb, "no such port");
  }
  if (attr.sl > kHighestServiceLevel) return refuse(EINVAL, kVerb, "the service level is over 15");
  ibv_port_attr port;
  if (const Status status = query_port(context, attr.port_num, port); !status.ok()) {
    return status.error();
  }
  if (attr.is_global != 0) {
    if (attr.grh.sgid_index >= port.gid_tbl_len) {
      log_refusal("%s: no such GID index: sgid_index is %u, those of port %u are 0 to %d", kVerb,
                  attr.grh.sgid_index, attr.port_num, port.gid_tbl_len - 1);
      return Error{EINVAL, "no such GID index"};
    }
  } else if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return refuse(EINVAL, kVerb, "needs is_global and a GID index on a RoCE port");
  }
  Ah* ah = nullptr;
  if (const int error = table_of(context).create_ah(pd, attr, &ah)) {
    return Error{error, "create_ah"};
  }
  ah->plain.context = context.handle();
  ah->plain.pd = &pd.plain;
  ah->attr = attr;
  check_new_ah(context, attr);
  pin(&pd);
  own(*ah);
  return ah;
}

Status destroy_ah(Ah& ah) noexcept {
  if (was_left(ah)) return {};
  Pd& pd = Pd::from(ah.plain.pd);
  disown(ah);
  if (const int error = table_of(ah).destroy_ah(ah)) {
    own_again(ah);
    return Error{error, "destroy_ah"};
  }
  unpin(&pd);
  return {};
}

Status path_of_sender(Context& context, std::uint32_t port, const ibv_wc& wc, const ibv_grh* grh,
                      ibv_ah_attr& out) noexcept {
  ibv_port_attr attributes;
  if (const Status status = query_port(context, port, attributes); !status.ok()) return status;
  const bool ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  ibv_ah_attr path{};
  path.port_num = static_cast<std::uint8_t>(port);
  path.dlid = wc.slid;
  path.sl = wc.sl;
  path.src_path_bits = wc.dlid_path_bits;
  if ((wc.wc_flags & IBV_WC_GRH) != 0) {
    if (grh == nullptr)
      return refuse(EINVAL, kFromWc, "the completion has a GRH, the call has not");
    const Route route = read_route(*grh, ethernet);
    const Result<int> index =
        find_gid(context, port, attributes.gid_tbl_len, route.destination, route.type);
    if (!index.ok()) return index.status();
    path.is_global = 1;
    path.grh.dgid = route.source;
    path.grh.sgid_index = static_cast<std::uint8_t>(index.value());
    path.grh.flow_label = route.flow_label;
    path.grh.hop_limit = route.hop_limit;
    path.grh.traffic_class = route.traffic_class;
  } else if (ethernet) {
    return refuse(EINVAL, kFromWc, "a RoCE completion without GRH leads nowhere");
  }
  out = path;
  return {};
}

Status resolve_eth_l2(Context& context, ibv_ah_attr& attr, std::uint8_t* mac,
                      std::uint16_t& vlan) noexcept {
  constexpr std::uint16_t kNoVlan = 0xffff;
  const std::uint8_t* const gid = attr.grh.dgid.raw;
  if (gid[0] == 0xff) {
    // Group addresses are computed, from IPv6 (33:33) or IPv4 mapped into the group GID (01:00:5e).
    const bool ipv4 = gid[10] == 0xff && gid[11] == 0xff;
    const std::uint8_t group6[] = {0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
    const std::uint8_t group4[] = {0x01,    0x00,   0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f),
                                   gid[14], gid[15]};
    std::memcpy(mac, ipv4 ? group4 : group6, sizeof group6);
    vlan = kNoVlan;
    return {};
  }
  if (is_link_local(attr.grh.dgid)) {
    // EUI-64 with the universal bit turned; a VLAN takes the place of the filler ff:fe.
    const std::uint8_t address[] = {
        static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
    std::memcpy(mac, address, sizeof address);
    constexpr unsigned kFiller = 0xfffe;
    constexpr unsigned kHighestVlan = 0xfff;
    const unsigned middle = static_cast<unsigned>(gid[11] << 8 | gid[12]);
    vlan =
        middle != kFiller && middle <= kHighestVlan ? static_cast<std::uint16_t>(middle) : kNoVlan;
    return {};
  }
  return Status::from_errno(table_of(context).resolve_eth_l2(context, attr, mac, &vlan),
                            "resolve_eth_l2");
}

}  // namespace verbatim
