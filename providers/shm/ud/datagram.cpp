// SPDX-License-Identifier: BSD-2-Clause
//
// UD: datagrams of at most one MTU, each to whom its address handle and number say. They may be
// lost: when nobody is there, when the Q_Key is not the receiver's, when it has posted no receive
// (IBTA 9.8.3). What was sent while a receive was posted arrives.
#include "providers/shm/ud/datagram.hpp"

#include <cerrno>
#include <iterator>

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "providers/shm/ud/addresses.hpp"
#include "providers/shm/ud/datagram_verdict.hpp"
#include "providers/shm/ud/multicast.hpp"
#include "providers/shm/wire/copy_fast.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/request_checks.hpp"
#include "runtime/verbs/software/routing_header.hpp"
#include "runtime/verbs/software/soft_domains.hpp"

namespace verbatim::shm {
namespace {

/// First contact: the other process may have to be met, its service thread needs a core.
constexpr std::uint64_t kConnectNs = 1'000'000'000;
/// The receiver's process takes nothing from the stream ring, polled or not: it is stopped.
constexpr std::uint64_t kStoppedNs = 100'000'000;

bool has_qkey(const Qp& qp, const Qp& endpoint, std::uint32_t qkey) noexcept {
  return endpoint.link.destination != nullptr &&
         load_relaxed(endpoint.link.destination->qkey) == carried_qkey(qkey, qp.attributes.qkey);
}

/// The endpoint to `qpn`, led to its destination if it can be.
Qp* endpoint_to(Qp& qp, std::uint32_t qpn, Wait& wait) noexcept {
  for (int tries = 0; tries < 2; ++tries) {
    Qp* endpoint = find_endpoint(qp, qpn);
    if (endpoint == nullptr) endpoint = open_endpoint(qp, qpn);
    wait = Wait::kReceive;
    if (endpoint == nullptr) return nullptr;
    const bool was_there = endpoint->link.remote != nullptr;
    if (!was_there || !is_dead(*endpoint)) {
      wait = reach_destination(*endpoint);
      if (wait != Wait::kReceive || !was_there) return endpoint;
    }
    // Reset since, or another's now; of the dead, who would never make room in its stream ring
    // again.
    abandon_endpoint(qp, *endpoint);
  }
  return nullptr;
}

/// Whom the message of `slot` was sent to: the group that it names, or this device.
ibv_gid destination_of(const Qp& endpoint, const Slot& slot, std::uint64_t h,
                       std::uint8_t gid_index) noexcept {
  if (header::is_to_group(h)) {
    ibv_gid group;
    for (std::size_t i = 0; i < sizeof group.raw; ++i)
      group.raw[i] = load_relaxed(slot.data[Slot::kGroupAt + i]);
    if (is_group(group)) return group;
  }
  const Context& context = context_of(endpoint);
  return gid_of_device(context, context.device.index, gid_index);
}

std::uint64_t shown_of(const ibv_ah_attr& attr) noexcept {
  const ibv_global_route& route = attr.grh;
  // The service level stands in the local header, everything else in the routing header.
  return attr.is_global == 0 ? path::make(attr.sl, 0, 0, path::kUsualHopLimit, 0)
                             : path::make(attr.sl, route.flow_label, route.traffic_class,
                                          route.hop_limit, route.sgid_index);
}

/// Of the path of the message of `slot`. The peer's word: every value of its fields is one.
std::uint64_t path_of(const Slot& slot, std::uint64_t h) noexcept {
  if (!header::has_path(h)) return 0;
  return load_relaxed(*reinterpret_cast<const std::uint64_t*>(slot.data + Slot::kPathAt));
}

/// In front of what a datagram puts into a receive.
bool place_routing_header(const Qp& endpoint, const LocalRange* room, std::uint32_t count,
                          std::uint32_t payload, std::uint64_t path, const ibv_gid& source,
                          const ibv_gid& destination) noexcept {
  unsigned char bytes[sizeof(ibv_grh)];
  write_routing_header(
      {source, destination, payload, path::class_and_label(path), path::hop_limit(path),
       context_of(endpoint).ethernet && is_roce_v2(path::gid_index(path))},
      bytes);
  return scatter(room, count, 0, bytes, sizeof bytes);
}

/// Whether a datagram to a group has to wait until every process of the fabric has been met.
bool waits_for_strangers(Qp& qp) noexcept {
  Datagrams& datagrams = *qp.datagrams;
  if (!Process::get().is_connecting_to_all()) {
    datagrams.connected_in_vain = false;
    return false;
  }
  if (datagrams.connected_in_vain) return false;
  if (!waited_too_long(qp.sq.progress.connecting_until, kConnectNs)) return true;
  datagrams.connected_in_vain = true;
  return false;
}

bool is_late(const Datagrams& datagrams, std::uint64_t process) noexcept {
  for (const std::uint64_t late : datagrams.late)
    if (late == process) return true;
  return false;
}

/// Whether it has to wait until the processes of members that are new have made their halves of the
/// endpoints. One that lets that time pass is still asked to connect, but not waited for again.
bool waits_for_members(Qp& qp, std::uint32_t count) noexcept {
  Datagrams& datagrams = *qp.datagrams;
  const Member* const members = datagrams.members.list;
  bool waits = false, is_over = false;
  Wait wait;
  for (std::uint32_t i = 0; i < count; ++i) {
    (void)endpoint_to(qp, members[i].qpn, wait);
    if (wait != Wait::kPeer || is_late(datagrams, members[i].process)) continue;
    if (!waits) is_over = waited_too_long(qp.sq.progress.deadline, kConnectNs);
    waits = true;
    if (is_over)
      datagrams.late[datagrams.late_count++ % std::size(datagrams.late)] = members[i].process;
  }
  return waits && !is_over;
}

/// One datagram to all members: when every one of them has been reached, or has had its time.
Step send_to_group(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept {
  constexpr std::uint64_t kRoomNs = 500'000;
  if (waits_for_strangers(qp)) return Step::waits(Wait::kPeer);
  ibv_gid group;
  group.global = {send.remote_address, send.swap};
  const std::uint32_t count = find_members(group, qp.own->qpn, qp.datagrams->members);
  if (waits_for_members(qp, count)) return Step::waits(Wait::kPeer);
  const Member* const members = qp.datagrams->members.list;
  Wait wait;
  for (std::uint32_t i = 0; i < count; ++i) {
    Qp* endpoint = endpoint_to(qp, members[i].qpn, wait);
    // It leads to the number's owner: whoever else showed the number as a member's is not heard.
    if (wait != Wait::kNothing || endpoint->link.destination != members[i].record ||
        !has_qkey(qp, *endpoint, static_cast<std::uint32_t>(send.compare_add)))
      continue;
    // A full stream ring holds the others up only so long as its reader's service thread needs.
    const std::uint64_t deadline = now_ns() + kRoomNs;
    Step step = send_message(*endpoint, lock, send, local);
    for (bool is_over = false;
         step.kind == Step::Kind::kWait && step.wait == Wait::kStream && !is_over;) {
      is_over = now_ns() >= deadline;
      cpu_pause();
      step = send_message(*endpoint, lock, send, local);
    }
    endpoint->sq.progress.clear();
  }
  return Step::done();
}

}  // namespace

int create_ah(verbatim::Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept {
  if (const int error = SoftAddressVerbs<Ah>::create_ah(pd, attr, out); error != 0) return error;
  Ah& ah = static_cast<Ah&>(**out);
  ah.path = shown_of(attr);
  ah.is_plain = attr.is_global == 0 && ah.path == 0 &&
                leads_to_this_host(Context::of(pd.plain.context), attr);
  return 0;
}

int check_datagram(const Qp& qp, const ibv_send_wr& wr) noexcept {
  if (qp.mode.load(std::memory_order_relaxed) < IBV_QPS_RTS) return EINVAL;
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  return is_addressed(wr, qp.plain.context) ? 0 : EINVAL;
}

bool send_datagram_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr) noexcept {
  if (qp.has_queued || qp.mode.load(std::memory_order_relaxed) != IBV_QPS_RTS ||
      wr.sg_list == nullptr || !qp.has_place())
    return false;
  Qp* endpoint = find_endpoint(qp, wr.wr.ud.remote_qpn);
  if (endpoint == nullptr || endpoint->link.remote == nullptr ||
      endpoint->link.remote->accepts.load(std::memory_order_acquire) !=
          endpoint->link.remote_session ||
      wr.wr.ud.ah->pd->handle != qp.pd_number)
    return false;
  const Ah& ah = Ah::from(wr.wr.ud.ah);
  const ibv_ah_attr& path = ah.attr;
  if (!leads_to_this_host(context_of(qp), path) || !has_qkey(qp, *endpoint, wr.wr.ud.remote_qkey))
    return false;
  std::uint32_t bytes;
  if (!put_shared_now(*endpoint, qp, wr, path.is_global != 0 ? header::kGlobal : 0u, ah.path,
                      bytes))
    return false;
  complete_now(qp, lock, wr, bytes);
  return true;
}

namespace {

bool address_datagram(const Qp& qp, const ibv_send_wr& wr, PendingSend& send) noexcept {
  const Ah& ah = Ah::from(wr.wr.ud.ah);
  const ibv_ah_attr& path = ah.attr;
  send.set_path(ah.path);
  send.rkey = wr.wr.ud.remote_qpn;
  send.compare_add = wr.wr.ud.remote_qkey;
  send.is_foreign = wr.wr.ud.ah->pd->handle != qp.pd_number;
  send.is_global = path.is_global != 0;
  send.is_lost = !leads_to_this_host(context_of(qp), path);
  if (path.is_global != 0 && is_group(path.grh.dgid)) {
    send.is_lost = send.rkey != kGroupQpn;
    send.to_group = true;
    send.remote_address = path.grh.dgid.global.subnet_prefix;
    send.swap = path.grh.dgid.global.interface_id;
  }
  return true;
}

/// A datagram whose bytes are there.
Step send_bytes(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local) noexcept {
  if (send.is_lost) return Step::done();
  if (send.to_group) return send_to_group(qp, lock, send, local);
  Wait wait;
  Qp* endpoint = endpoint_to(qp, send.rkey, wait);
  if (wait == Wait::kPeer)
    return waited_too_long(qp.sq.progress.connecting_until, kConnectNs) ? Step::done()
                                                                        : Step::waits(wait);
  if (wait != Wait::kNothing ||
      !has_qkey(qp, *endpoint, static_cast<std::uint32_t>(send.compare_add)))
    return Step::done();
  const Step step = send_message(*endpoint, lock, send, local);
  if (step.kind != Step::Kind::kWait) {
    endpoint->sq.progress.clear();
    return Step::done();
  }
  if (step.wait == Wait::kReceive || waited_too_long(qp.sq.progress.deadline, kStoppedNs)) {
    endpoint->sq.progress.clear();
    return Step::done();
  }
  return step;
}

/// Where a datagram is lost nobody would look whether its memory on demand is there.
[[gnu::cold, gnu::noinline]] Step send_on_demand(Qp& qp, SendLock& lock, const PendingSend& send,
                                                 const LocalRange* local) noexcept {
  unsigned char bytes[kMaxDatagram];
  if (!gather(bytes, local, send.num_sge, 0, send.length)) return Step::fails(IBV_WC_LOC_PROT_ERR);
  LocalRange copy[kMaxSge]{};
  copy[0] = {bytes, send.length, false};
  return send_bytes(qp, lock, send, copy);
}

Step send_datagram(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept {
  if (send.length > kMaxDatagram) return Step::fails(IBV_WC_LOC_LEN_ERR);
  if (send.is_foreign) return Step::fails(IBV_WC_LOC_QP_OP_ERR);
  for (std::uint32_t i = 0; i < send.num_sge; ++i)
    if (local[i].on_demand) return send_on_demand(qp, lock, send, local);
  return send_bytes(qp, lock, send, local);
}

bool show_path(const Qp& endpoint, const LocalRange* room, std::uint32_t count, const Slot& slot,
               std::uint64_t h, ibv_wc& wc) noexcept {
  const std::uint64_t path = path_of(slot, h);
  wc.sl = path::service_level(path);
  if ((header::flags(h) & header::kGlobal) == 0) return true;
  const std::uint8_t index = path::gid_index(path);
  const ibv_gid source =
      gid_of_device(context_of(endpoint), load_relaxed(endpoint.in.remote->device), index);
  wc.wc_flags |= IBV_WC_GRH;
  return place_routing_header(endpoint, room, count, wc.byte_len, path, source,
                              destination_of(endpoint, slot, h, index));
}

bool is_queue_pair_of_datagrams(const Qp&, const QpRecord& record) noexcept {
  return load_relaxed(record.type) == IBV_QPT_UD;
}

}  // namespace

constinit const QpKind kDatagramKind{.address = address_datagram,
                                     .send = send_datagram,
                                     .is_unconnected = true,
                                     .is_destination = is_queue_pair_of_datagrams,
                                     .accept = accept_endpoints,
                                     .judge = judge_datagram,
                                     .show_path = show_path,
                                     .stop_accepting = stop_accepting};

}  // namespace verbatim::shm
