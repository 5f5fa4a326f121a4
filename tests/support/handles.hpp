// SPDX-License-Identifier: BSD-2-Clause
//
// Verbs objects that are destroyed when they go out of scope. A destroy verb that refuses then is a
// finding of its own: it fails the test, or in a role complains on standard error, which does too.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace verbatim::harness {

/// Says that `verb` answered `error` where success was due.
void report_failed_destroy(const char* verb, int error);

/// ibv_close_xrcd has no address of its own to be a template's argument.
int close_xrcd(ibv_xrcd* xrcd);

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    if (const int error = Destroy(object)) report_failed_destroy(__PRETTY_FUNCTION__, error);
  }
};

/// These verbs are inline functions: of internal linkage, so none for a template.
struct WindowDestroyer {
  void operator()(ibv_mw* mw) const {
    if (const int error = ibv_dealloc_mw(mw)) report_failed_destroy("ibv_dealloc_mw", error);
  }
};
struct DomainDestroyer {
  void operator()(ibv_td* td) const {
    if (const int error = ibv_dealloc_td(td)) report_failed_destroy("ibv_dealloc_td", error);
  }
};
struct DeviceMemoryDestroyer {
  void operator()(ibv_dm* dm) const {
    if (const int error = ibv_free_dm(dm)) report_failed_destroy("ibv_free_dm", error);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using TdHandle = std::unique_ptr<ibv_td, DomainDestroyer>;
using PdHandle = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using MrHandle = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using MwHandle = std::unique_ptr<ibv_mw, WindowDestroyer>;
using DmHandle = std::unique_ptr<ibv_dm, DeviceMemoryDestroyer>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CqHandle = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using QpHandle = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using SrqHandle = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using AhHandle = std::unique_ptr<ibv_ah, Destroyer<ibv_destroy_ah>>;
using XrcdHandle = std::unique_ptr<ibv_xrcd, Destroyer<close_xrcd>>;

/// Names the device of sessions that name none, in a test's children above all.
inline constexpr const char* kDeviceVariable = "VERBATIM_TEST_DEVICE";

/// An open device and a protection domain on it. When `name` is null, the device that the
/// environment names, or else the first.
struct Session {
  explicit Session(const char* name = nullptr);
  ContextHandle context;
  PdHandle pd;
  ibv_device_attr attr{};
  ibv_port_attr port{};
  /// The address to connect with, and its row. Ethernet ports have several, and only a routable one
  /// of RoCE v2 leads to every other.
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
};

}  // namespace verbatim::harness
