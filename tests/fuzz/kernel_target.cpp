// SPDX-License-Identifier: BSD-2-Clause
//
// What a kernel may say: netlink answers, replies to commands by every way, records of events, and
// the description of a ring. Whatever it says, what is believed of it is within bounds: names are
// names, handles are one object's, events name living objects, rings lie in their mapping.
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "providers/rxe/completion.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/queue.hpp"
#include "providers/rxe/shared_receive.hpp"
#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/connection.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/made_queues.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/kernel_stranger.hpp"

namespace verbatim::fuzz {
namespace {

void holds_a_name(const char (&name)[uverbs::KernelDevice::kNameSize]) {
  const std::size_t length = ::strnlen(name, sizeof name);
  VBT_HOLDS(length != 0 && length < sizeof name);
  VBT_HOLDS(std::memchr(name, '/', length) == nullptr && name[0] != '.');
}

void read_netlink(Input input) {
  const NetlinkStranger port(input);
  uverbs::Found found;
  if (uverbs::find_by_netlink(port, found) != 0) return;
  for (std::size_t i = 0; i < found.size(); ++i) {
    holds_a_name(found[i].name);
    holds_a_name(found[i].uverbs);
  }
}

/// Handles of what lives: none twice.
struct Living {
  std::set<std::uint32_t> handles;
  void add(std::uint32_t handle) { VBT_HOLDS(handles.insert(handle).second); }
};

void run_commands(Input input) {
  Device device;
  std::strcpy(device.plain.name, "rxe0");
  CommandStranger stranger(input);
  uverbs::Context context(device, 14, stranger);
  context.port_count = 1;
  if (uverbs::start_context(context) != 0) return;
  VBT_HOLDS(context.extended.context.num_comp_vectors > 0);
  Living living;
  ibv_device_attr_ex device_attr{};
  static_cast<void>(uverbs::query_device(context, device_attr));
  ibv_port_attr port{};
  static_cast<void>(uverbs::query_port(context, 1, port));
  ibv_gid_entry gid{};
  if (uverbs::query_gid(context, 1, 0, gid) == 0) VBT_HOLDS(gid.gid_type <= IBV_GID_TYPE_ROCE_V2);

  Pd* pd = nullptr;
  if (uverbs::alloc_pd(context, &pd) != 0) return;
  pd->plain.context = context.handle();
  living.add(pd->plain.handle);
  verbatim::Mr* mr = nullptr;
  if (uverbs::reg_mr(*pd, nullptr, 4096, 0, 0, &mr) == 0) {
    mr->plain.context = context.handle();
    living.add(mr->plain.handle);
  }
  CompChannel* channel = nullptr;
  if (uverbs::create_comp_channel(context, &channel) == 0) {
    VBT_HOLDS(channel->plain.fd >= 0);
    channel->plain.context = context.handle();
  }
  uverbs::Cq cq;
  ibv_cq_init_attr_ex cq_attr{};
  cq_attr.cqe = 4;
  const bool has_cq = uverbs::create_cq(context, cq_attr, channel, cq, {}) == 0;
  if (has_cq) living.add(cq.plain.handle);
  uverbs::Qp qp;
  unsigned char reply[32] = {};
  bool has_qp = false;
  if (has_cq) {
    ibv_qp_init_attr_ex qp_attr{};
    qp_attr.pd = &pd->plain;
    qp_attr.send_cq = qp_attr.recv_cq = &cq.plain;
    qp_attr.qp_type = IBV_QPT_RC;
    has_qp = uverbs::create_qp(context, qp_attr, qp, kernel::DriverData::reply(reply)) == 0;
  }
  if (has_qp) {
    living.add(qp.plain.handle);
    VBT_HOLDS(qp.plain.qp_num <= 0xffffff);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (uverbs::query_qp(qp, attr, IBV_QP_STATE, init) == 0) {
      VBT_HOLDS(attr.qp_state < IBV_QPS_UNKNOWN);
    }
  }
  // Records that the descriptors bring. All end: a pipe that is empty says so.
  for (int i = 0; i < 4 && stranger.writer >= 0; ++i) {
    unsigned char record[sizeof(ib_uverbs_async_event_desc)];
    stranger.fill(record, sizeof record);
    if (::write(stranger.writer, record, sizeof record) < 0) break;
  }
  ibv_async_event event{};
  if (uverbs::get_async_event(context, event) == 0 && event.event_type == IBV_EVENT_CQ_ERR) {
    VBT_HOLDS(has_cq && event.element.cq == &cq.plain);
  }
  verbatim::Cq* got = nullptr;
  if (channel != nullptr && uverbs::get_cq_event(*channel, &got) == 0) VBT_HOLDS(got == &cq);

  // Every event that came is acknowledged: destroying must end, whatever counts are told.
  qp.plain.events_completed = cq.plain.comp_events_completed = cq.plain.async_events_completed =
      0x7fffffff;
  if (has_qp) static_cast<void>(uverbs::destroy_qp(qp));
  if (has_cq) static_cast<void>(uverbs::destroy_cq(cq));
  if (channel != nullptr) static_cast<void>(uverbs::destroy_comp_channel(*channel));
  stranger.calm_down();
  if (mr != nullptr) VBT_HOLDS(uverbs::dereg_mr(*mr) == 0);
  VBT_HOLDS(uverbs::dealloc_pd(*pd) == 0);
}

/// Objects that a kernel may refuse to end: then they stay, and can be ended later.
class Endings {
 public:
  template <class Call>
  void end(Living& living, std::uint32_t handle, Call call) {
    if (call() == 0)
      living.handles.erase(handle);
    else
      refused_.push_back(call);
  }
  void again() {
    for (const auto& call : refused_) VBT_HOLDS(call() == 0);
  }

 private:
  std::vector<std::function<int()>> refused_;
};

constexpr std::size_t kRingFile = 16384;
/// What a driver would share, with a head of the input's. Behind it there is nothing as far as an
/// offset reaches, since a driver lets no more be mapped than there is.
int ring_file(Input& input) {
  constexpr off_t kAsFarAsFilesGo = std::numeric_limits<off_t>::max() - 4095;
  static const int file = ::memfd_create("ring", MFD_CLOEXEC);
  // (What earlier inputs have touched goes.)
  VBT_HOLDS(file >= 0 && ::ftruncate(file, 0) == 0 && ::ftruncate(file, kAsFarAsFilesGo) == 0);
  rxe_queue_buf head{};
  head.log2_elem_size = static_cast<std::uint32_t>(input.number());
  head.index_mask = static_cast<std::uint32_t>(input.number());
  VBT_HOLDS(::pwrite(file, &head, sizeof head, 0) == sizeof head);
  return file;
}

/// The same region, changed: whatever is answered, it can be ended, and by its key is found what
/// was asked for.
void change_region(uverbs::Context& context, verbatim::Mr& mr, Pd& other) {
  alignas(64) static char memory[64];
  constexpr int kFlags =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD;
  if (uverbs::rereg_mr(mr, kFlags, &other, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) != 0)
    return;
  uverbs::RegionFacts facts;
  VBT_HOLDS(context.regions.find(mr.plain.lkey, facts));
  VBT_HOLDS(facts.bytes == sizeof memory && facts.pd == other.plain.handle);
  VBT_HOLDS(facts.access == unsigned{IBV_ACCESS_LOCAL_WRITE});
}

/// A shared receive queue of the driver's: where its elements are said to lie, in a file that is
/// mapped, and what is believed of its size.
void share_receives(rxe::Context& context, Pd& pd, Living& living, Endings& endings) {
  ibv_srq_init_attr_ex attr{};
  attr.attr = {8, 2, 0};
  attr.pd = &pd.plain;
  attr.srq_type = IBV_SRQT_BASIC;
  verbatim::Srq* srq = nullptr;
  if (rxe::create_srq(context, attr, &srq) != 0) return;
  living.add(srq->plain.handle);
  ibv_srq_attr told{8, 2, 2};
  static_cast<void>(rxe::modify_srq(*srq, told, IBV_SRQ_LIMIT));
  static_cast<void>(rxe::modify_srq(*srq, told, IBV_SRQ_MAX_WR));
  static_cast<void>(uverbs::query_srq(*srq, told));
  auto& mine = static_cast<rxe::Srq&>(*srq);
  const auto* const ring = reinterpret_cast<const unsigned char*>(mine.ring.ring());
  const auto* const last =
      static_cast<const unsigned char*>(mine.ring.element(mine.ring.capacity()));
  const std::size_t used = sizeof(rxe_recv_wqe) + mine.max_sge * sizeof(rxe_sge);
  VBT_HOLDS(last >= ring + sizeof(rxe_queue_buf));
  VBT_HOLDS(used <= mine.ring.element_size());
  srq->plain.events_completed = 0x7fffffff;
  endings.end(living, srq->plain.handle, [srq] { return uverbs::unmake_srq<rxe::Srq>(*srq); });
}

void send_to_an_address(Pd& pd, Living& living, Endings& endings) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  verbatim::Ah* ah = nullptr;
  if (rxe::create_ah(pd, attr, &ah) != 0) return;
  living.add(ah->plain.handle);
  VBT_HOLDS(static_cast<rxe::Ah&>(*ah).number != 0);
  endings.end(living, ah->plain.handle, [ah] { return rxe::destroy_ah(*ah); });
}

void resize_queue(rxe::Context& context, Living& living, Endings& endings) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 4;
  verbatim::Cq* cq = nullptr;
  if (rxe::create_cq(context, attr, nullptr, &cq) != 0) return;
  living.add(cq->plain.handle);
  static_cast<void>(rxe::resize_cq(*cq, 9));
  VBT_HOLDS(cq->plain.cqe > 0);
  ibv_wc wc[4];
  const int found = rxe::poll_cq(&cq->plain, 4, wc);
  VBT_HOLDS(found >= 0 && found <= 4);
  cq->plain.comp_events_completed = cq->plain.async_events_completed = 0x7fffffff;
  endings.end(living, cq->plain.handle, [cq] { return uverbs::unmake_cq<rxe::Cq>(*cq); });
}

/// The rarer objects, and changes of them.
void run_changes(Input input) {
  Device device;
  std::strcpy(device.plain.name, "rxe0");
  CommandStranger stranger(input);
  rxe::Context context(device, 14, stranger);
  context.port_count = 1;
  if (uverbs::start_context(context) != 0) return;
  // Rings are mapped from the device's node: a file in its place.
  context.command_channel.adopt(UniqueFd(::dup(ring_file(input))));
  stranger.mappable = kRingFile;
  Living living;
  Endings endings;
  Pd* pd = nullptr;
  if (uverbs::alloc_pd(context, &pd) != 0) return;
  pd->plain.context = context.handle();
  living.add(pd->plain.handle);
  verbatim::Mr* mr = nullptr;
  if (uverbs::reg_mr(*pd, nullptr, 4096, 0, 0, &mr) == 0) {
    mr->plain.context = context.handle();
    living.add(mr->plain.handle);
    change_region(context, *mr, *pd);
  }
  Mw* mw = nullptr;
  if (uverbs::alloc_mw(*pd, IBV_MW_TYPE_2, &mw) == 0) {
    mw->plain.context = context.handle();
    living.add(mw->plain.handle);
  }
  share_receives(context, *pd, living, endings);
  send_to_an_address(*pd, living, endings);
  resize_queue(context, living, endings);
  stranger.calm_down();
  endings.again();
  if (mw != nullptr) VBT_HOLDS(uverbs::dealloc_mw(*mw) == 0);
  if (mr != nullptr) VBT_HOLDS(uverbs::dereg_mr(*mr) == 0);
  VBT_HOLDS(uverbs::dealloc_pd(*pd) == 0);
}

void read_connections(Input input) {
  const std::uint32_t qpn = input.take();
  const NetlinkStranger port(input);
  RemotePlace place;
  const bool found = uverbs::find_peer(port, 1, qpn, place) == 0;
  VBT_HOLDS(found == (place.kind == RemotePlace::Kind::kSocket));
}

void read_gids(Input input) {
  Device device;
  CommandStranger stranger(input);
  uverbs::Context context(device, 14, stranger);
  context.port_count = 1;
  for (int i = 0; i < 4; ++i) {
    ibv_gid_entry rows[4];
    std::size_t count = 0;
    const std::size_t room = input.below(std::size(rows) + 1);
    if (uverbs::query_gid_table(context, rows, room, count) != 0) continue;
    VBT_HOLDS(count <= room);
    for (std::size_t row = 0; row < count; ++row)
      VBT_HOLDS(rows[row].gid_type <= IBV_GID_TYPE_ROCE_V2 && rows[row].port_num == 1);
  }
}

void map_ring(Input input) {
  const int file = ring_file(input);
  mminfo place{};
  place.size = static_cast<std::uint32_t>(input.number() % (kRingFile + 1));
  rxe::Queue queue;
  if (queue.map(file, place, 64) != 0) return;
  for (int i = 0; i < 8; ++i) {
    const auto index = static_cast<std::uint32_t>(input.number());
    const auto* const at = static_cast<const unsigned char*>(queue.element(index));
    const auto* const ring = reinterpret_cast<const unsigned char*>(queue.ring());
    VBT_HOLDS(at >= ring + sizeof(rxe_queue_buf) && at + queue.element_size() <= ring + place.size);
  }
}

}  // namespace

void run_one(Bytes bytes) {
  static const bool quiet = ::setenv("VERBATIM_LOG", "off", 0) == 0;
  VBT_HOLDS(quiet);
  Input input(bytes);
  const std::uint8_t subject = input.take();
  if (subject > 240) return read_gids(input);
  switch (subject % 5) {
    case 0:
      return read_netlink(input);
    case 1:
      return run_commands(input);
    case 3:
      return run_changes(input);
    case 4:
      return read_connections(input);
    default:
      return map_ring(input);
  }
}

}  // namespace verbatim::fuzz
