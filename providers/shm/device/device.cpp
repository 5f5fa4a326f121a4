// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/device.hpp"

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "providers/shm/calls/cursor.hpp"
#include "providers/shm/control/xrc_target.hpp"
#include "providers/shm/device/fork.hpp"
#include "providers/shm/device/service_hooks.hpp"
#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/device_memory.hpp"
#include "providers/shm/memory/region_table.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/queue_limits.hpp"
#include "providers/shm/ud/addresses.hpp"
#include "providers/shm/ud/multicast.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/verbs/software/soft_context.hpp"
#include "runtime/verbs/software/soft_device.hpp"

namespace verbatim::shm {
namespace {

/// An OUI that is nobody's: locally administered. Programs take 0 for a device that is not there.
constexpr std::uint32_t kVendor = 0x025642;
constexpr std::uint32_t kPart = 1;
constexpr std::uint32_t kHardwareVersion = 1;

bool is_ethernet() noexcept {
  static constexpr std::string_view kLinks[] = {"infiniband", "ethernet"};
  return environment_choice("VERBATIM_SHM_LINK", kLinks, 0) == 1;
}

/// Off: peers reach memory that they could map as they reach any other.
bool may_be_mapped() noexcept {
  static constexpr std::string_view kChoices[] = {"auto", "off"};
  return environment_choice("VERBATIM_SHM_MAP", kChoices, 0) == 0;
}

/// The same for all processes of the host, another on another host.
std::uint64_t host_guid() noexcept {
  char id[64] = {};
  const UniqueFd file(::open("/etc/machine-id", O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::read(file.get(), id, sizeof(id)) <= 0) ::gethostname(id, sizeof(id) - 1);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  // Locally administered, and nobody's group: Ethernet addresses are made from it.
  return (hash | std::uint64_t{2} << 56) & ~(std::uint64_t{1} << 56 | kDeviceBits);
}

/// Bits of the kernel's device_cap_flags_ex that verbs.h has no names for (ib_user_verbs.h).
constexpr std::uint64_t kFlushGlobal = std::uint64_t{1} << 38;
constexpr std::uint64_t kAtomicWrite = std::uint64_t{1} << 40;

/// Nothing is pinned, so every region is one on demand, up to the whole address space.
void describe_memory(ibv_device_attr_ex& attr) noexcept {
  attr.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  auto& odp = attr.odp_caps.per_transport_caps;
  odp.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  odp.uc_odp_caps = odp.ud_odp_caps | IBV_ODP_SUPPORT_WRITE;
  odp.rc_odp_caps = odp.uc_odp_caps | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                    IBV_ODP_SUPPORT_FLUSH | IBV_ODP_SUPPORT_ATOMIC_WRITE;
  attr.xrc_odp_caps = odp.rc_odp_caps;
  attr.max_dm_size = kMaxDeviceMemory;
  attr.orig_attr.device_cap_flags |=
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  attr.orig_attr.max_mw = kMaxRegions - 1;
  attr.device_cap_flags_ex = attr.orig_attr.device_cap_flags | kFlushGlobal | kAtomicWrite;
}

using OwnVerbs = SoftContextVerbs<Context>;

/// Puts the context among those that are open, which are told when the process fails later. EIO: it
/// has failed.
int admit(Context& context) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  if (Process::get().has_failed()) return EIO;
  if (++live.contexts == 1) region_table.set_users(await_all_peers);
  live.opened.add(context);
  return 0;
}

}  // namespace

int resolve_eth_l2(verbatim::Context& handle, ibv_ah_attr& attr, std::uint8_t* mac,
                   std::uint16_t* vlan) noexcept {
  constexpr std::uint16_t kNoVlan = 0xffff;
  const auto& context = static_cast<Context&>(handle);
  ibv_ah_attr path = attr;
  path.is_global = 1;
  if (!leads_to_this_host(context, path)) {
    log_refusal("ibv_resolve_eth_l2_from_gid: the GID is none of this host's shm devices");
    return EHOSTUNREACH;
  }
  const std::uint32_t number = attr.grh.dgid.raw[15] - 1u;
  const ibv_gid local = gid_of_device(context, number, 0);
  const std::uint8_t* const id = local.raw + 8;
  // EUI-64 (RFC 4291), as the runtime reads it out of link-local ones.
  const std::uint8_t address[] = {
      static_cast<std::uint8_t>(id[0] ^ 2), id[1], id[2], id[5], id[6], id[7]};
  std::memcpy(mac, address, sizeof address);
  *vlan = kNoVlan;
  return 0;
}

int list_devices(DeviceSink& sink) noexcept {
  const auto count =
      static_cast<std::uint32_t>(environment_integer("VERBATIM_SHM_DEVICES", 1, 1, kMaxDevices));
  const std::uint64_t host = host_guid();
  for (std::uint32_t i = 0; i < count; ++i) {
    char name[16];
    std::snprintf(name, sizeof(name), "shm%u", i);
    DeviceDescription found{
        .name = name, .dev_name = name, .guid = htobe64(host | (i + 1)), .index = i};
    if (const int error = sink.add(found); error != 0) return error;
  }
  return 0;
}

int open(Device& device, verbatim::Context** out) noexcept {
  verbatim::Context* made = nullptr;
  if (const int error = OwnVerbs::open(device, &made)) return error;
  auto& context = static_cast<Context&>(*made);
  context.ethernet = is_ethernet();
  context.shows_arenas = may_be_mapped();
  int error = Process::start(service_hooks);
  if (error == 0) {
    error = prepare_for_forks();
    if (error == 0) error = admit(context);
    if (error != 0) Process::stop();
  }
  if (error != 0) {
    OwnVerbs::close(context);
    return error;
  }
  *out = &context;
  return 0;
}

void close(verbatim::Context& handle) noexcept {
  auto& context = static_cast<Context&>(handle);
  // All of ours may be gone, with nobody to have noticed yet.
  if (!Process::get().segment().has_its_files()) context.events.doubt_descriptor();
  bool last;
  {
    LockGuard<Mutex> guard(live.mutex);
    live.opened.remove(context);
    last = --live.contexts == 0;
  }
  OwnVerbs::close(context);
  if (last) {
    forget_orphans();
    forget_parked();
    forget_all_outgoing();
    region_table.reset();
  }
  Process::stop();
}

int query_device(verbatim::Context& context, ibv_device_attr_ex& attr) noexcept {
  describe_device(kQueueLimits, attr);
  ibv_device_attr& a = attr.orig_attr;
  std::snprintf(a.fw_ver, sizeof(a.fw_ver), "%s", VERBATIM_VERSION);
  a.vendor_id = kVendor;
  a.vendor_part_id = kPart;
  a.hw_ver = kHardwareVersion;
  a.node_guid = context.device.guid;
  a.sys_image_guid = htobe64(be64toh(context.device.guid) & ~kDeviceBits);
  a.max_qp = kMaxQps;
  a.device_cap_flags |= IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC;
  a.max_cq = kMaxCqs;
  a.max_srq = kMaxQps;
  a.max_mr = kMaxRegions - 1;
  a.max_qp_rd_atom = kMaxRdAtomic;
  a.max_res_rd_atom = static_cast<int>(kMaxRdAtomic * kMaxQps);
  a.max_qp_init_rd_atom = kMaxRdAtomic;
  a.max_mcast_grp = kMaxGroups;
  a.max_mcast_qp_attach = kMaxMembers;
  a.max_total_mcast_qp_attach = kMaxGroups;
  attr.completion_timestamp_mask = ~std::uint64_t{0};
  attr.hca_core_clock = kRawClockKhz;
  attr.cq_mod_caps = {kMaxModerationCount, kMaxModerationPeriodUs};
  describe_memory(attr);
  return 0;
}

int query_port(verbatim::Context& context, std::uint8_t port, ibv_port_attr& attr) noexcept {
  if (port != kPort) return EINVAL;
  const bool ethernet = static_cast<Context&>(context).ethernet;
  describe_port(Process::get().can_be_met(), ethernet, attr);
  attr.max_msg_sz = static_cast<std::uint32_t>(kMaxMessage);
  if (ethernet)
    attr.gid_tbl_len = kGids;
  else
    attr.lid = lid_of_device(context.device.index);
  return 0;
}

int query_gid(verbatim::Context& context, std::uint8_t port, int index,
              ibv_gid_entry& entry) noexcept {
  const bool ethernet = static_cast<Context&>(context).ethernet;
  if (port != kPort || index < 0 || index >= (ethernet ? kGids : 1)) {
    static constinit LogOnce once;
    if (!ethernet && index > 0 && index < kGids && once.first())
      log_info(
          "shm: query_gid: of link layer InfiniBand there is GID index 0 alone; with "
          "VERBATIM_SHM_LINK=ethernet there are 0 to 3");
    return EINVAL;
  }
  const auto row = static_cast<std::uint8_t>(index);
  entry.gid = gid_of_device(static_cast<Context&>(context), context.device.index, row);
  entry.gid_type = !ethernet         ? IBV_GID_TYPE_IB
                   : is_roce_v2(row) ? IBV_GID_TYPE_ROCE_V2
                                     : IBV_GID_TYPE_ROCE_V1;
  entry.ndev_ifindex = 0;
  return 0;
}

int get_async_event(verbatim::Context& context, ibv_async_event& event) noexcept {
  const int error = OwnVerbs::get_async_event(context, event);
  say_failures();  // what the event is about, before the program acts on it
  return error;
}

}  // namespace verbatim::shm
