// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/connection.hpp"

#include <cerrno>
#include <cstring>

#include "providers/uverbs/netlink_ask.hpp"

namespace verbatim::uverbs {
namespace {

bool is_same(const RemotePlace& place, const kernel::NetlinkConnection& one) noexcept {
  return place.port == one.peer_port && std::memcmp(place.gid.raw, one.peer, sizeof one.peer) == 0;
}

}  // namespace

int find_peer(const NetlinkPort& port, std::uint32_t device, std::uint32_t qpn,
              RemotePlace& out) noexcept {
  constexpr std::uint32_t kSequence = 1;
  RemotePlace place;
  bool ambiguous = false;
  const auto take = [&](const kernel::NetlinkAnswer& answer) {
    kernel::Bytes table = answer.connections;
    for (kernel::NetlinkConnection one; next_connection(table, one);) {
      if (one.qpn != qpn || !one.has_peer) continue;
      // An identifier may outlive its queue pair, whose number has another one then.
      ambiguous |= place.kind != RemotePlace::Kind::kUnknown && !is_same(place, one);
      place.kind = RemotePlace::Kind::kSocket;
      place.port = one.peer_port;
      std::memcpy(place.gid.raw, one.peer, sizeof one.peer);
    }
    return 0;
  };
  if (const int error = ask(port, kernel::ask_connections(kSequence, device), kSequence, take))
    return error;
  if (ambiguous || place.kind == RemotePlace::Kind::kUnknown) return ENOENT;
  out = place;
  return 0;
}

void see_peer(Context& context, std::uint32_t qpn, RemotePlace& out) noexcept {
  const int device = Device::from(context.handle()->device).kernel_index;
  if (device < 0) return;
  NetlinkSocket socket;
  if (socket.open() != 0) return;
  // Without an answer it stays unknown.
  static_cast<void>(find_peer(socket, static_cast<std::uint32_t>(device), qpn, out));
}

}  // namespace verbatim::uverbs
