// SPDX-License-Identifier: BSD-2-Clause
//
// Verbs objects that are destroyed when they go out of scope. A destroy verb that refuses then is a
// finding of its own: it fails the test, or in a role complains on standard error, which does too.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "perf/support/verbs_handles.hpp"

namespace verbatim::harness {

/// Says that `verb` answered `error` where success was due.
void report_failed_destroy(const char* verb, int error);

struct FailTheTest {
  static void refused(const char* verb, int error) { report_failed_destroy(verb, error); }
};
using Destroyer = perf::Destroyer<FailTheTest>;
template <class Object>
using Handle = perf::Handle<Object, FailTheTest>;

using ContextHandle = Handle<ibv_context>;
using TdHandle = Handle<ibv_td>;
using PdHandle = Handle<ibv_pd>;
using MrHandle = Handle<ibv_mr>;
using MwHandle = Handle<ibv_mw>;
using DmHandle = Handle<ibv_dm>;
using ChannelHandle = Handle<ibv_comp_channel>;
using CounterHandle = Handle<ibv_comp_cntr>;
using CqHandle = Handle<ibv_cq>;
using QpHandle = Handle<ibv_qp>;
using SrqHandle = Handle<ibv_srq>;
using AhHandle = Handle<ibv_ah>;
using XrcdHandle = Handle<ibv_xrcd>;

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
