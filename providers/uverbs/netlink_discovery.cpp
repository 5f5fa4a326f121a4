// SPDX-License-Identifier: BSD-2-Clause
// find_by_netlink: a dump of all devices, then a question for the node of each.
#include <cerrno>
#include <cstring>

#include "abi/kernel/netlink.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/netlink_ask.hpp"
#include "providers/uverbs/node.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/fork_guard.hpp"

namespace verbatim::uverbs {
namespace {

using kernel::NetlinkAnswer;

int take_device(Found& found, const NetlinkAnswer& answer) noexcept {
  if (!answer.all(NetlinkAnswer::kIndex | NetlinkAnswer::kName) || answer.index > INT32_MAX) {
    return 0;
  }
  KernelDevice* const device = found.append();
  if (device == nullptr) return ENOMEM;
  std::memcpy(device->name, answer.name, sizeof device->name);
  device->index = static_cast<int>(answer.index);
  device->node_type = answer.node_type;
  device->guid = answer.node_guid;
  return 0;
}

/// About one that left between the two questions, or has no node, nothing is to be done.
[[gnu::cold]] void tell_of_no_node(const char* device, int error) noexcept {
  if (error == 0 || error == ENODEV)
    log_info("%s: left out: the kernel told of no node", device);
  else
    log_warn("%s: left out: the kernel did not say which node it has: %s", device,
             std::strerror(error));
}

static_assert(KernelDevice::kNameSize == NetlinkAnswer::kNameSize);

}  // namespace

int find_by_netlink(const NetlinkPort& port, Found& found) noexcept {
  std::uint32_t sequence = 1;
  const int error = ask(port, kernel::ask_devices(sequence), sequence,
                        [&](const NetlinkAnswer& answer) { return take_device(found, answer); });
  if (error != 0) return error;
  for (std::size_t i = 0; i < found.size();) {
    KernelDevice& device = found[i];
    bool complete = false;
    ++sequence;
    const int failed =
        ask(port, kernel::ask_character_device(sequence, static_cast<std::uint32_t>(device.index)),
            sequence, [&](const NetlinkAnswer& answer) {
              if (!answer.all(NetlinkAnswer::kChardevName | NetlinkAnswer::kChardev |
                              NetlinkAnswer::kAbi)) {
                return 0;
              }
              std::memcpy(device.uverbs, answer.chardev_name, sizeof device.uverbs);
              device.number = node_number(answer.chardev);
              device.abi = static_cast<std::uint32_t>(answer.abi);
              device.driver = answer.driver;
              complete = true;
              return 0;
            });
    // This kernel tells no nodes (before 5.1): sysfs does.
    if (failed == EINVAL || failed == EOPNOTSUPP) return failed;
    if (complete) {
      ++i;
      continue;
    }
    tell_of_no_node(device.name, failed);
    found.remove(i);
  }
  return 0;
}

int ask_copy_on_fork(const NetlinkPort& port, bool& copies) noexcept {
  constexpr std::uint32_t kSequence = 1;
  copies = false;
  return ask(port, kernel::ask_system(kSequence), kSequence, [&](const NetlinkAnswer& answer) {
    if (answer.all(NetlinkAnswer::kCopyOnFork)) copies = answer.copy_on_fork != 0;
    return 0;
  });
}

namespace {

/// Whether one of the variables asks for it, as libibverbs understands them: any value but "0".
bool fork_safety_is_asked() noexcept {
  for (const char* const name : {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE"}) {
    const char* const text = environment_text(name, 64);
    if (text != nullptr && std::strcmp(text, "0") != 0) return true;
  }
  return false;
}

}  // namespace

void tell_of_forks() noexcept {
  log_warn(
      "%sthis kernel does not copy registered memory at a fork (Linux 5.12 does): after one, what "
      "the device writes may no longer be seen; fork before the first registration only, or ask "
      "for fork safety before it (ibv_fork_init, RDMAV_FORK_SAFE=1)",
      fork_safety_is_asked() ? "fork()-safety requested but init failed: " : "");
}

void prepare_for_forks() noexcept {
  static constinit LogOnce once;
  if (!once.first()) return;
  NetlinkSocket socket;
  prepare_for_forks(socket.open() == 0 ? &socket : nullptr);
}

void prepare_for_forks(const NetlinkPort* port) noexcept {
  bool copies = false;
  const bool told = port != nullptr && ask_copy_on_fork(*port, copies) == 0;
  if (copies) return;
  fork_safety::need();
  if (fork_safety_is_asked()) static_cast<void>(fork_safety::ask());
  // A kernel that does not answer may copy all the same.
  if (told && !fork_safety::is_on()) tell_of_forks();
}

}  // namespace verbatim::uverbs
