// SPDX-License-Identifier: BSD-2-Clause
// An opened kernel device, and what every provider of one answers in the same way. Functions with
// the name and signature of a slot are put into a provider's table as they are; open_context() is
// what its `open` calls. Any thread. Spec: the man pages of the verbs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/uverbs/command_channel.hpp"
#include "providers/uverbs/object_table.hpp"
#include "providers/uverbs/region_table.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::uverbs {

struct FailureEyes;
/// The eyes of a driver that adds nothing of its own (failures.hpp).
extern const FailureEyes plain_eyes;

struct Context : verbatim::Context {
  Context(Device& owner, std::uint32_t driver, const System& system = linux_system) noexcept
      : verbatim::Context(owner), command_channel(driver, system) {}

  CommandChannel command_channel;
  ObjectTable objects;
  RegionTable regions;
  UniqueFd async;
  std::uint64_t core_support = 0;         ///< ib_uverbs_core_support
  const FailureEyes* eyes = &plain_eyes;  ///< the driver's; set when it is made
  bool heeds_ipc_lock = true;  ///< the driver: CAP_IPC_LOCK lifts the limit of pinned memory
  /// Moves with everything by which the kernel tells that it may have led a queue pair to another
  /// state by itself: completions in error, and events. Relaxed: a hint to look.
  std::atomic<std::uint32_t> troubles{0};
};

[[nodiscard]] inline Context& context_of(ibv_context* handle) noexcept {
  return static_cast<Context&>(verbatim::Context::from(handle));
}
template <class Handle>
[[nodiscard]] inline Context& context_of(const Handle& object) noexcept {
  return context_of(object.plain.context);
}

/// Opens the device's node and makes the kernel's half of the context. 0 or errno (said why).
[[nodiscard]] int open_context(Context& context, const kernel::DriverData& driver = {}) noexcept;
/// Makes the kernel's half of a context whose command channel has its descriptor.
[[nodiscard]] int start_context(Context& context, const kernel::DriverData& driver = {}) noexcept;

int query_device(verbatim::Context& context, ibv_device_attr_ex& attr) noexcept;
int query_port(verbatim::Context& context, std::uint8_t port, ibv_port_attr& attr) noexcept;
int query_gid(verbatim::Context& context, std::uint8_t port, int index,
              ibv_gid_entry& entry) noexcept;
int query_gid_table(verbatim::Context& context, ibv_gid_entry* rows, std::size_t room,
                    std::size_t& count) noexcept;
int query_pkey(verbatim::Context& context, std::uint8_t port, int index, __be16& pkey) noexcept;
int get_async_event(verbatim::Context& context, ibv_async_event& event) noexcept;

/// What a read of `size` bytes from a descriptor of events has returned: 0, or errno. EIO, or the
/// end of the file, is what readers are told when the device goes; those asleep wake by it.
[[nodiscard]] int event_error(Context& context, std::ptrdiff_t got, std::size_t size) noexcept;

/// A destroy command's answer, read as what it means for us: an object of a device that is gone is
/// gone too. 0 or errno.
[[nodiscard]] int destroyed(int error) noexcept;

}  // namespace verbatim::uverbs
