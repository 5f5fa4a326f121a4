// SPDX-License-Identifier: BSD-2-Clause
//
// What a kernel may say: netlink answers, replies to commands by every way, records of events, and
// the description of a ring. Whatever it says, what is believed of it is within bounds: names are
// names, handles are one object's, events name living objects, rings lie in their mapping.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "providers/rxe/queue.hpp"
#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {
namespace {

struct NetlinkStranger : uverbs::NetlinkPort {
  explicit NetlinkStranger(Input& from) : NetlinkPort{send_entry, receive_entry}, input(&from) {}
  static int send_entry(const uverbs::NetlinkPort&, const void*, std::size_t) noexcept { return 0; }
  static ssize_t receive_entry(const uverbs::NetlinkPort& self, void* buffer,
                               std::size_t size) noexcept {
    Input& input = *static_cast<const NetlinkStranger&>(self).input;
    if (input.empty()) return -EAGAIN;
    const std::size_t length = std::min<std::size_t>(size, input.below(512));
    auto* const bytes = static_cast<unsigned char*>(buffer);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = input.take();
    return static_cast<ssize_t>(length);
  }
  Input* input;
};

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

/// Answers every call with the input's bytes.
struct CommandStranger : uverbs::System {
  explicit CommandStranger(Input& from) : System{ioctl_entry, write_entry}, input(&from) {}
  ~CommandStranger() {
    if (writer >= 0) ::close(writer);
  }

  /// A descriptor that may be closed, or a number that is none.
  int descriptor() {
    if (input->flag()) return -1 - static_cast<int>(input->take());
    int ends[2];
    VBT_HOLDS(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    if (writer >= 0) ::close(writer);
    writer = ends[1];
    given = ends[0];
    return given;
  }
  int status() {
    constexpr int kErrors[] = {ENOTTY, EPROTONOSUPPORT, EIO,   EINVAL,
                               ENOMEM, EOPNOTSUPP,      EBUSY, ENOSPC};
    const std::uint8_t choice = input->take();
    const int error = choice < 200 ? 0 : kErrors[choice % std::size(kErrors)];
    if (error != 0 && given >= 0) {  // with an error a kernel gives none
      ::close(given);
      ::close(writer);
      writer = -1;
    }
    given = -1;
    return error;
  }
  void fill(void* memory, std::size_t size) {
    auto* const bytes = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = input->take();
  }
  void fill_reply(std::uint32_t command, unsigned char* out, std::size_t size) {
    fill(out, size);
    // Descriptors are believed to be ours: they must be, or none.
    if (command == IB_USER_VERBS_CMD_GET_CONTEXT ||
        command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
      const int fd = descriptor();
      if (size >= sizeof fd) std::memcpy(out, &fd, sizeof fd);
    }
  }

  static int ioctl_entry(const uverbs::System& self, int,
                         kernel::IoctlCall::Message& message) noexcept {
    auto& stranger = const_cast<CommandStranger&>(static_cast<const CommandStranger&>(self));
    const bool invoke = message.header.object_id == UVERBS_OBJECT_DEVICE &&
                        message.header.method_id == UVERBS_METHOD_INVOKE_WRITE;
    std::uint32_t command = UINT32_MAX;
    for (unsigned i = 0; i < message.header.num_attrs; ++i) {
      ib_uverbs_attr& attribute = message.attributes[i];
      if (invoke && attribute.attr_id == UVERBS_ATTR_WRITE_CMD) {
        command = static_cast<std::uint32_t>(attribute.data);
      }
    }
    for (unsigned i = 0; i < message.header.num_attrs; ++i) {
      ib_uverbs_attr& attribute = message.attributes[i];
      const bool out = is_output(message.header, attribute.attr_id);
      if (out) {
        stranger.fill_reply(attribute.attr_id == UVERBS_ATTR_CORE_OUT ? command : UINT32_MAX,
                            reinterpret_cast<unsigned char*>(attribute.data), attribute.len);
      }
      if (attribute.len == 0) {  // a handle or a descriptor
        attribute.data = stranger.input->number();
        if (message.header.object_id == UVERBS_OBJECT_ASYNC_EVENT) {
          attribute.data_s64 = stranger.descriptor();
        }
      }
      if (!stranger.input->flag() || stranger.input->flag()) {
        attribute.flags |= UVERBS_ATTR_F_VALID_OUTPUT;
      }
    }
    return stranger.status();
  }
  static int write_entry(const uverbs::System& self, int, const void* bytes,
                         std::size_t size) noexcept {
    auto& stranger = const_cast<CommandStranger&>(static_cast<const CommandStranger&>(self));
    ib_uverbs_cmd_hdr head;
    VBT_HOLDS(size >= sizeof head);
    std::memcpy(&head, bytes, sizeof head);
    const bool extended = (head.command & kernel::kExtended) != 0;
    std::uint64_t response = 0;
    std::size_t room = head.out_words * std::size_t{4};
    if (extended || room != 0) {
      VBT_HOLDS(size >= sizeof head + sizeof response);
      std::memcpy(&response, static_cast<const unsigned char*>(bytes) + sizeof head,
                  sizeof response);
    }
    if (extended) room = head.out_words * std::size_t{8};
    if (response != 0) {
      stranger.fill_reply(head.command, reinterpret_cast<unsigned char*>(response), room);
    }
    return stranger.status();
  }
  /// Which attributes of the methods that the library uses are memory for an answer.
  static bool is_output(const kernel::IoctlHeader& header, unsigned id) {
    if (id == UVERBS_ATTR_UHW_OUT) return true;
    switch (header.object_id << 16 | header.method_id) {
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_INVOKE_WRITE:
        return id == UVERBS_ATTR_CORE_OUT;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_GET_CONTEXT:
        return true;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_PORT:
        return id == UVERBS_ATTR_QUERY_PORT_RESP;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_ENTRY:
        return id == UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY;
      case UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_CREATE:
        return id == UVERBS_ATTR_CREATE_CQ_RESP_CQE;
      case UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_CREATE:
        return id >= UVERBS_ATTR_CREATE_QP_RESP_CAP;
      case UVERBS_OBJECT_SRQ << 16 | UVERBS_METHOD_SRQ_CREATE:
        return id >= UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR;
      default:
        return false;
    }
  }

  Input* input;
  int writer = -1;
  int given = -1;  ///< by the call that is being answered
};

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
  stranger.input = nullptr;
  static Input nothing{{}};
  stranger.input = &nothing;
  if (mr != nullptr) VBT_HOLDS(uverbs::dereg_mr(*mr) == 0);
  VBT_HOLDS(uverbs::dealloc_pd(*pd) == 0);
}

void map_ring(Input input) {
  constexpr std::size_t kFile = 16384;
  static const int file = ::memfd_create("ring", MFD_CLOEXEC);
  VBT_HOLDS(file >= 0 && ::ftruncate(file, kFile) == 0);
  rxe_queue_buf head{};
  head.log2_elem_size = static_cast<std::uint32_t>(input.number());
  head.index_mask = static_cast<std::uint32_t>(input.number());
  VBT_HOLDS(::pwrite(file, &head, sizeof head, 0) == sizeof head);
  mminfo place{};
  place.size = static_cast<std::uint32_t>(input.number() % (kFile + 1));
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
  switch (input.take() % 3) {
    case 0:
      return read_netlink(input);
    case 1:
      return run_commands(input);
    default:
      return map_ring(input);
  }
}

}  // namespace verbatim::fuzz
