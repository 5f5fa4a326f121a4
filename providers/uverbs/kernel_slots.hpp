// SPDX-License-Identifier: BSD-2-Clause
// What every provider of a kernel device has in its table: its devices, how they open and close, and
// the slots that this room answers for all of them. A provider inherits it and adds its own:
//
//   struct Rxe : uverbs::KernelSlots<rxe::Context, kDriver> { ... };
#pragma once

#include <cerrno>
#include <type_traits>

#include "providers/uverbs/completion.hpp"
#include "providers/uverbs/context.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/failures.hpp"
#include "providers/uverbs/memory.hpp"
#include "providers/uverbs/shared_receive.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::uverbs {

/// The driver has nothing to say of a context that it has made.
struct NoContextReply {};

/// `DeviceContext` derives from uverbs::Context. `Reply`: what the driver says of a new one.
template <class DeviceContext, const Driver& kDriver, class Reply = NoContextReply>
struct KernelSlots {
  using Context = DeviceContext;

  static int list_devices(DeviceSink& sink) noexcept { return uverbs::list_devices(kDriver, sink); }
  static int open(Device& device, verbatim::Context** out) noexcept {
    DeviceContext* const context = make_nothrow<DeviceContext>(device, kDriver.id);
    if (context == nullptr) return ENOMEM;
    if (const int error = open_kernel_half(*context)) {
      destroy_nothrow(context);
      return error;
    }
    *out = context;
    return 0;
  }
  static void close(verbatim::Context& context) noexcept {
    destroy_nothrow(static_cast<DeviceContext*>(&context));
  }

  static constexpr auto query_device = uverbs::query_device;
  static constexpr auto query_port = uverbs::query_port;
  static constexpr auto query_gid = uverbs::query_gid;
  static constexpr auto query_gid_table = uverbs::query_gid_table;
  static constexpr auto query_pkey = uverbs::query_pkey;
  static constexpr auto get_async_event = uverbs::get_async_event;
  static constexpr auto alloc_pd = uverbs::alloc_pd;
  static constexpr auto dealloc_pd = uverbs::dealloc_pd;
  static constexpr auto create_comp_channel = uverbs::create_comp_channel;
  static constexpr auto destroy_comp_channel = uverbs::destroy_comp_channel;
  static constexpr auto get_cq_event = uverbs::get_cq_event;
  static constexpr auto query_srq = uverbs::query_srq;
  static constexpr auto explain_qp = uverbs::explain_qp;

 private:
  static int open_kernel_half(DeviceContext& context) noexcept {
    if constexpr (std::is_same_v<Reply, NoContextReply>) {
      return open_context(context);
    } else {
      Reply reply{};
      return open_context(context, kernel::DriverData::reply(reply));
    }
  }
};

}  // namespace verbatim::uverbs
