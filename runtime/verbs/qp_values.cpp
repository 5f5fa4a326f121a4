// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/qp_values.hpp"

#include <cerrno>
#include <cstdio>

#include "runtime/base/log.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/rights.hpp"

namespace verbatim {
namespace {

/// One refused value: which attribute, what it was, what it may be.
int refuse_value(const Qp& qp, const char* attribute, unsigned long value, unsigned long lowest,
                 unsigned long highest) noexcept {
  log_refusal_of(attribute, "ibv_modify_qp: QP 0x%06x: %s is %lu, but must be from %lu to %lu",
                 qp.plain.qp_num, attribute, value, lowest, highest);
  return EINVAL;
}

int check_range(const Qp& qp, const char* attribute, unsigned long value, unsigned long lowest,
                unsigned long highest) noexcept {
  if (value >= lowest && value <= highest) return 0;
  return refuse_value(qp, attribute, value, lowest, highest);
}

/// What the QP's device allows, as far as the attributes in `mask` need it: of a kernel device each
/// question is a system call. The port is the one that this call sets, or else the QP's; the first
/// one speaks for a port that does not exist, which check_qp_values refuses.
struct Limits {
  ibv_device_attr_ex device{};
  ibv_port_attr port{};
  std::uint32_t port_count = 0;

  int ask(Context& context, std::uint8_t port_number, int mask) noexcept {
    constexpr int kOfDevice = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC;
    constexpr int kOfPort = IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_PATH_MTU;
    port_count = context.port_count;
    if ((mask & kOfDevice) != 0) {
      if (const int error = table_of(context).query_device(context, device)) return error;
    }
    if ((mask & kOfPort) == 0) return 0;
    if (port_number < 1 || port_number > port_count) port_number = 1;
    return table_of(context).query_port(context, port_number, port);
  }
};

int check_path(const Qp& qp, const char* attribute, const ibv_ah_attr& path,
               const Limits& limits) noexcept {
  constexpr unsigned long kHighestServiceLevel = 15;
  constexpr unsigned long kHighestPathBits = 127;
  char name[64];
  const auto part = [&](const char* what) {
    std::snprintf(name, sizeof name, "%s (%s)", attribute, what);
    return name;
  };
  if (int e = check_range(qp, part("port_num"), path.port_num, 1, limits.port_count)) return e;
  if (int e = check_range(qp, part("sl"), path.sl, 0, kHighestServiceLevel)) return e;
  if (int e = check_range(qp, part("src_path_bits"), path.src_path_bits, 0, kHighestPathBits)) {
    return e;
  }
  if (path.is_global != 0) {
    const auto entries = static_cast<unsigned long>(limits.port.gid_tbl_len);
    if (path.grh.sgid_index >= entries) {
      return refuse_value(qp, part("sgid_index"), path.grh.sgid_index, 0,
                          entries == 0 ? 0 : entries - 1);
    }
    return 0;
  }
  if (limits.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    log_refusal("ibv_modify_qp: QP 0x%06x: %s needs is_global and a GID index on a RoCE port",
                qp.plain.qp_num, attribute);
    return EINVAL;
  }
  return 0;
}

}  // namespace

int check_qp_values(const Qp& qp, const ibv_qp_attr& attr, int mask,
                    ibv_mtu ibv_port_attr::*largest_mtu) noexcept {
  constexpr unsigned long k24Bits = 0xffffff;
  constexpr unsigned long kFiveBits = 31;
  constexpr unsigned long kThreeBits = 7;
  constexpr unsigned kKnownRights = kRightsOfPeers | kRightsOfRegions | IBV_ACCESS_ZERO_BASED;
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  Context& context = context_of(qp);
  const std::uint8_t port = has(IBV_QP_PORT) ? attr.port_num : qp.attributes.port_num;
  Limits limits;
  if (const int error = limits.ask(context, port, mask)) return error;
  const ibv_device_attr& device = limits.device.orig_attr;

  if (has(IBV_QP_PORT)) {
    if (int e = check_range(qp, "IBV_QP_PORT", port, 1, limits.port_count)) return e;
  }
  if (has(IBV_QP_PKEY_INDEX)) {
    const unsigned long entries = limits.port.pkey_tbl_len;
    if (attr.pkey_index >= entries) {
      return refuse_value(qp, "IBV_QP_PKEY_INDEX", attr.pkey_index, 0,
                          entries == 0 ? 0 : entries - 1);
    }
  }
  if (has(IBV_QP_ACCESS_FLAGS)) {
    if ((attr.qp_access_flags & ~kKnownRights) != 0) {
      log_refusal("ibv_modify_qp: QP 0x%06x: IBV_QP_ACCESS_FLAGS has unknown bits 0x%x",
                  qp.plain.qp_num, attr.qp_access_flags & ~kKnownRights);
      return EINVAL;
    }
  }
  if (has(IBV_QP_AV)) {
    if (int e = check_path(qp, "IBV_QP_AV", attr.ah_attr, limits)) return e;
  }
  if (has(IBV_QP_ALT_PATH)) {
    if (int e = check_path(qp, "IBV_QP_ALT_PATH", attr.alt_ah_attr, limits)) return e;
    if (int e = check_range(qp, "IBV_QP_ALT_PATH (alt_port_num)", attr.alt_port_num, 1,
                            limits.port_count)) {
      return e;
    }
    if (int e = check_range(qp, "IBV_QP_ALT_PATH (alt_timeout)", attr.alt_timeout, 0, kFiveBits)) {
      return e;
    }
  }
  if (has(IBV_QP_PATH_MTU)) {
    if (int e = check_range(qp, "IBV_QP_PATH_MTU", attr.path_mtu, IBV_MTU_256,
                            static_cast<unsigned long>(limits.port.*largest_mtu))) {
      return e;
    }
  }
  if (has(IBV_QP_DEST_QPN)) {
    if (int e = check_range(qp, "IBV_QP_DEST_QPN", attr.dest_qp_num, 0, k24Bits)) return e;
  }
  if (has(IBV_QP_TIMEOUT)) {
    if (int e = check_range(qp, "IBV_QP_TIMEOUT", attr.timeout, 0, kFiveBits)) return e;
  }
  if (has(IBV_QP_RETRY_CNT)) {
    if (int e = check_range(qp, "IBV_QP_RETRY_CNT", attr.retry_cnt, 0, kThreeBits)) return e;
  }
  if (has(IBV_QP_RNR_RETRY)) {
    if (int e = check_range(qp, "IBV_QP_RNR_RETRY", attr.rnr_retry, 0, kThreeBits)) return e;
  }
  if (has(IBV_QP_MIN_RNR_TIMER)) {
    if (int e = check_range(qp, "IBV_QP_MIN_RNR_TIMER", attr.min_rnr_timer, 0, kFiveBits)) return e;
  }
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) {
    if (int e = check_range(qp, "IBV_QP_MAX_QP_RD_ATOMIC", attr.max_rd_atomic, 0,
                            static_cast<unsigned long>(device.max_qp_init_rd_atom))) {
      return e;
    }
  }
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) {
    if (int e = check_range(qp, "IBV_QP_MAX_DEST_RD_ATOMIC", attr.max_dest_rd_atomic, 0,
                            static_cast<unsigned long>(device.max_qp_rd_atom))) {
      return e;
    }
  }
  if (has(IBV_QP_PATH_MIG_STATE)) {
    if (int e = check_range(qp, "IBV_QP_PATH_MIG_STATE", attr.path_mig_state, IBV_MIG_MIGRATED,
                            IBV_MIG_ARMED)) {
      return e;
    }
  }
  return 0;
}

}  // namespace verbatim
