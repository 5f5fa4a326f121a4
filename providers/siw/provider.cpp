// SPDX-License-Identifier: BSD-2-Clause
//
// What siw can do, on one screen. A slot that is not named here answers EOPNOTSUPP.
#include "runtime/verbs/provider.hpp"

#include "providers/siw/completion.hpp"
#include "providers/siw/hot.hpp"
#include "providers/siw/memory.hpp"
#include "providers/siw/queue_pairs.hpp"
#include "providers/siw/shared_receive.hpp"
#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/failures.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::siw {
namespace {

constexpr uverbs::Driver kDriver{RDMA_DRIVER_SIW, "siw", SIW_ABI_VERSION, SIW_ABI_VERSION};

struct Siw {
  static constexpr const char* kName = "siw";
  using Context = siw::Context;
  using Mr = siw::Mr;
  using Cq = siw::Cq;
  using Qp = siw::Qp;

  static int list_devices(DeviceSink& sink) noexcept { return uverbs::list_devices(kDriver, sink); }
  static int open(Device& device, verbatim::Context** out) noexcept {
    Context* const context = make_nothrow<Context>(device, kDriver.id);
    if (context == nullptr) return ENOMEM;
    siw_uresp_alloc_ctx reply{};
    if (const int error = uverbs::open_context(*context, kernel::DriverData::reply(reply))) {
      destroy_nothrow(context);
      return error;
    }
    *out = context;
    return 0;
  }
  static void close(verbatim::Context& context) noexcept {
    destroy_nothrow(static_cast<Context*>(&context));
  }
  static constexpr auto query_device = uverbs::query_device;
  static constexpr auto query_port = uverbs::query_port;
  static constexpr auto query_gid = uverbs::query_gid;
  static constexpr auto query_gid_table = uverbs::query_gid_table;
  static constexpr auto query_pkey = uverbs::query_pkey;
  static constexpr auto get_async_event = uverbs::get_async_event;

  static constexpr auto alloc_pd = uverbs::alloc_pd;
  static constexpr auto dealloc_pd = uverbs::dealloc_pd;
  static constexpr auto reg_mr = siw::reg_mr;
  static constexpr auto dereg_mr = uverbs::dereg_mr;

  static constexpr auto create_comp_channel = uverbs::create_comp_channel;
  static constexpr auto destroy_comp_channel = uverbs::destroy_comp_channel;
  static constexpr auto get_cq_event = uverbs::get_cq_event;
  static constexpr auto create_cq = siw::create_cq;
  static constexpr auto destroy_cq = siw::destroy_cq;
  static constexpr auto req_notify_cq = siw::req_notify_cq;
  static constexpr auto poll_cq = siw::poll_cq;

  static constexpr auto create_srq = siw::create_srq;
  static constexpr auto modify_srq = siw::modify_srq;
  static constexpr auto query_srq = uverbs::query_srq;
  static constexpr auto destroy_srq = siw::destroy_srq;
  static constexpr auto post_srq_recv = siw::post_srq_recv;

  static constexpr auto create_qp = siw::create_qp;
  static constexpr auto modify_qp = siw::modify_qp;
  static constexpr auto query_qp = siw::query_qp;
  static constexpr auto destroy_qp = siw::destroy_qp;
  static constexpr auto explain_qp = uverbs::explain_qp;
  static constexpr auto post_send = siw::post_send;
  static constexpr auto post_recv = siw::post_recv;
};

}  // namespace
}  // namespace verbatim::siw

extern "C" [[gnu::visibility("default")]] const verbatim::ProviderTable verbs_provider_siw;
constinit const verbatim::ProviderTable verbs_provider_siw =
    verbatim::make_provider_table<verbatim::siw::Siw>();
