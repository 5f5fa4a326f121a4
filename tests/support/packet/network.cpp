// SPDX-License-Identifier: BSD-2-Clause
//
// The device: its one world, its link, and what moves on by a call.
#include "runtime/time/clock.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

World& world() {
  static World* const made = new World;
  return *made;
}

ibv_gid own_gid() {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  gid.raw[15] = 1;
  return gid;
}
void pump() {
  for (std::vector<Packet> burst; !(burst = world().link.receive()).empty();) {
    for (Packet& packet : burst) {
      const auto found = world().queue_pairs.find(packet.to);
      if (found == world().queue_pairs.end()) continue;
      Qp& qp = *found->second;
      const bool receives =
          qp.state() == IBV_QPS_RTR || qp.state() == IBV_QPS_RTS || qp.state() == IBV_QPS_SQD;
      if (packet.kind != Kind::kRequest && packet.kind != Kind::kDatagram)
        hear(qp, packet);
      else if (receives && (packet.kind == Kind::kDatagram) == (qp.plain.qp_type == IBV_QPT_UD))
        packet.kind == Kind::kRequest ? respond(qp, packet) : take_datagram(qp, packet);
    }
  }
}

void progress() {
  pump();
  repeat_late(now_ns());
  pump();
}

}  // namespace verbatim::packet

void verbatim::harness::set_weather(const Weather& weather) {
  const LockGuard guard(packet::world().lock);
  packet::world().link.set(weather);
}
