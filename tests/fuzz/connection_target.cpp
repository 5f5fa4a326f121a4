// SPDX-License-Identifier: BSD-2-Clause
//
// What the kernel may say of connections: replies and events of its connection manager, and the
// completions of siw. Whatever it says, an event names a living identifier and a known thing, a
// number is one identifier's, and a completion has values of its types.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "providers/rdma_cm/identifier.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/objects.hpp"
#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {
namespace {

constexpr std::size_t kIdentifiers = 4;

/// Answers every command with the input's bytes. What it must be told to say at all it learns from
/// the commands: the number by which an identifier was made.
struct Manager : rdma_cm::System {
  explicit Manager(Input& from) : System{write_entry, wait_entry}, input(&from) {}

  static int wait_entry(const rdma_cm::System&, int, int) noexcept { return ETIMEDOUT; }
  static int write_entry(const rdma_cm::System& self, int, const void* bytes,
                         std::size_t size) noexcept {
    auto& manager = const_cast<Manager&>(static_cast<const Manager&>(self));
    Input& input = *manager.input;
    rdma_ucm_cmd_hdr head;
    VBT_HOLDS(size >= sizeof head);
    std::memcpy(&head, bytes, sizeof head);
    VBT_HOLDS(size == sizeof head + head.in);
    const auto* const body = static_cast<const unsigned char*>(bytes) + sizeof head;
    if (head.cmd == RDMA_USER_CM_CMD_CREATE_ID) {
      rdma_ucm_create_id asked;
      std::memcpy(&asked, body, sizeof asked);
      manager.last_uid = asked.uid;
    }
    if (head.cmd == RDMA_USER_CM_CMD_DESTROY_ID && manager.honest_end) return 0;
    if (input.empty()) return EAGAIN;
    if (input.take() % 8 == 0) return static_cast<int>(input.below(200)) + 1;
    std::uint64_t place = 0;
    const bool accepts = head.cmd == RDMA_USER_CM_CMD_CREATE_ID;
    std::memcpy(&place, body + (accepts ? 8 : 0), sizeof place);
    if (head.out != 0) manager.reply(reinterpret_cast<unsigned char*>(place), head);
    return 0;
  }
  void reply(unsigned char* to, const rdma_ucm_cmd_hdr& head) {
    const std::size_t length = std::min<std::size_t>(head.out, input->below(400));
    for (std::size_t i = 0; i < length; ++i) to[i] = input->take();
    if (head.cmd != RDMA_USER_CM_CMD_GET_EVENT || !input->flag()) return;
    // One that is nearly right, or is.
    rdma_ucm_event_resp record{};
    record.uid = input->flag() ? last_uid : input->number();
    record.id = static_cast<__u32>(input->number());
    record.event = input->below(20);
    record.param.conn.private_data_len = input->take();
    std::memcpy(to, &record, std::min<std::size_t>(head.out, sizeof record));
  }

  Input* input;
  std::uint64_t last_uid = 0;
  bool honest_end = false;
};

void run_manager(Input input) {
  Manager manager(input);
  rdma_cm::EventChannel channel(manager);
  std::optional<rdma_cm::Identifier> identifiers[kIdentifiers];
  rdma_cm::Event event;
  bool has_request = false;
  const auto is_living = [&](const rdma_cm::Identifier* about) {
    return std::any_of(std::begin(identifiers), std::end(identifiers), [about](const auto& one) {
      return one.has_value() && &*one == about && one->alive();
    });
  };
  for (int step = 0; step < 64 && !input.empty(); ++step) {
    std::optional<rdma_cm::Identifier>& at = identifiers[input.below(kIdentifiers)];
    switch (input.below(8)) {
      case 0:
        if (!at.has_value() && at.emplace().create(channel, RDMA_PS_TCP) != 0) at.reset();
        break;
      case 1:
        if (!at.has_value() && has_request) {
          VBT_HOLDS(at.emplace().adopt(channel, event) == 0);
          has_request = false;
        }
        break;
      case 2:
        at.reset();
        break;
      case 3: {
        rdma_cm::Address address;
        if (at.has_value() && at->query_addr(address) == 0) {
          VBT_HOLDS(address.source_size <= sizeof address.source);
          VBT_HOLDS(address.destination_size <= sizeof address.destination);
        }
        break;
      }
      case 4: {
        ib_uverbs_qp_attr attr{};
        if (at.has_value() && at->init_qp_attr(IBV_QPS_INIT, attr) == 0)
          VBT_HOLDS(attr.qp_state < IBV_QPS_UNKNOWN && attr.path_mtu <= IBV_MTU_4096);
        break;
      }
      default:
        if (has_request || channel.get_event(event, 0) != 0) break;
        VBT_HOLDS(kernel::is_known_cm_event(static_cast<std::uint32_t>(event.type)));
        VBT_HOLDS(is_living(event.about));
        has_request = event.type == rdma_cm::EventType::kConnectRequest;
        for (const auto& one : identifiers)
          VBT_HOLDS(!has_request || !one.has_value() || one->id() != event.request);
    }
    // One number, one identifier.
    for (std::size_t i = 0; i < kIdentifiers; ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (identifiers[i].has_value() && identifiers[k].has_value())
          VBT_HOLDS(identifiers[i]->id() != identifiers[k]->id());
      }
    }
  }
  manager.honest_end = true;
}

void poll_completions(Input input) {
  constexpr std::uint32_t kEntries = 16;
  constexpr std::size_t kFile = kEntries * sizeof(siw_cqe) + sizeof(siw_cq_ctrl);
  static const int file = ::memfd_create("completions", MFD_CLOEXEC);
  VBT_HOLDS(file >= 0 && ::ftruncate(file, kFile) == 0);
  unsigned char said[kFile];
  for (unsigned char& byte : said) byte = input.take();
  VBT_HOLDS(::pwrite(file, said, sizeof said, 0) == sizeof said);
  static Device device;
  siw::Context context(device, 18u);
  siw::Cq cq;
  cq.plain.context = context.handle();
  VBT_HOLDS(cq.ring.map(file, 0, kEntries) == 0);
  int found = 0;
  ibv_wc wc[5];
  for (int some = 0; (some = siw::poll_cq(&cq.plain, 5, wc)) != 0; found += some) {
    VBT_HOLDS(some > 0 && some <= 5);
    for (int i = 0; i < some; ++i) {
      VBT_HOLDS(wc[i].status <= IBV_WC_TM_RNDV_INCOMPLETE && wc[i].qp_num <= 0xffffff);
      VBT_HOLDS(wc[i].opcode == IBV_WC_SEND || wc[i].opcode == IBV_WC_RDMA_WRITE ||
                wc[i].opcode == IBV_WC_RDMA_READ || wc[i].opcode == IBV_WC_RECV);
    }
  }
  VBT_HOLDS(found <= static_cast<int>(kEntries));
}

}  // namespace

void run_one(Bytes bytes) {
  static const bool quiet = ::setenv("VERBATIM_LOG", "off", 0) == 0;
  VBT_HOLDS(quiet);
  Input input(bytes);
  return input.flag() ? run_manager(input) : poll_completions(input);
}

}  // namespace verbatim::fuzz
