// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/handles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace verbatim::harness {

void report_failed_destroy(const char* verb, int error) {
  ADD_FAILURE() << verb << ": " << std::strerror(error);
}

namespace {

/// The first routable row of RoCE v2, or 0.
std::uint8_t routable_row(ibv_context* context, const ibv_port_attr& port) {
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) return 0;
  for (int row = 0; row < std::min(port.gid_tbl_len, 255); ++row) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, 1, static_cast<std::uint32_t>(row), &entry, 0) != 0) continue;
    const bool link_local = entry.gid.raw[0] == 0xfe && (entry.gid.raw[1] & 0xc0) == 0x80;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !link_local) {
      return static_cast<std::uint8_t>(row);
    }
  }
  return 0;
}

}  // namespace

Session::Session(const char* name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr)
    throw std::runtime_error("ibv_get_device_list: " + std::string(strerror(errno)));
  if (name == nullptr) name = std::getenv(kDeviceVariable);
  ibv_device* chosen = nullptr;
  for (int i = 0; i < count && chosen == nullptr; ++i) {
    if (name == nullptr || std::strcmp(ibv_get_device_name(list[i]), name) == 0) chosen = list[i];
  }
  if (chosen != nullptr) context.reset(ibv_open_device(chosen));
  const int error = errno;
  ibv_free_device_list(list);
  if (chosen == nullptr) throw std::runtime_error("no such device");
  if (!context) throw std::runtime_error("ibv_open_device: " + std::string(std::strerror(error)));
  pd.reset(ibv_alloc_pd(context.get()));
  if (!pd) throw std::runtime_error("ibv_alloc_pd: " + std::string(std::strerror(errno)));
  if (ibv_query_device(context.get(), &attr) != 0) throw std::runtime_error("ibv_query_device");
  if (ibv_query_port(context.get(), 1, &port) != 0) throw std::runtime_error("ibv_query_port");
  gid_index = routable_row(context.get(), port);
  if (ibv_query_gid(context.get(), 1, gid_index, &gid) != 0) {
    throw std::runtime_error("ibv_query_gid");
  }
}

}  // namespace verbatim::harness
