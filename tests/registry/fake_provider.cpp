// SPDX-License-Identifier: BSD-2-Clause
// A second provider for the registry test, from outside the archive: one device, which nobody
// opens.
#include <cerrno>

#include "runtime/verbs/provider.hpp"

namespace verbatim::fake {
namespace {

struct Fake {
  static constexpr const char* kName = "fake";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;

  static int list_devices(DeviceSink& sink) noexcept {
    DeviceDescription found{};
    found.name = "fake0";
    return sink.add(found);
  }
  static int open(Device&, Context**) noexcept { return ENODEV; }
  static void close(Context&) noexcept {}
};

}  // namespace
}  // namespace verbatim::fake

extern "C" {
extern constinit const verbatim::ProviderTable verbs_provider_fake;
constinit const verbatim::ProviderTable verbs_provider_fake =
    verbatim::make_provider_table<verbatim::fake::Fake>();
}
