// SPDX-License-Identifier: BSD-2-Clause
// The body of qp_states.hpp: asks the table of qp_transitions, then looks at the values.
#include "runtime/verbs/software/qp_states.hpp"

#include <cerrno>
#include <cstdio>

#include "runtime/base/log.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/software/qp_transitions.hpp"

namespace verbatim {
namespace {

constexpr std::uint32_t k24Bits = 0xffffff;

/// The names of the bits of ibv_qp_attr_mask, as the application writes them.
constexpr const char* kAttributeNames[] = {
    "IBV_QP_STATE",
    "IBV_QP_CUR_STATE",
    "IBV_QP_EN_SQD_ASYNC_NOTIFY",
    "IBV_QP_ACCESS_FLAGS",
    "IBV_QP_PKEY_INDEX",
    "IBV_QP_PORT",
    "IBV_QP_QKEY",
    "IBV_QP_AV",
    "IBV_QP_PATH_MTU",
    "IBV_QP_TIMEOUT",
    "IBV_QP_RETRY_CNT",
    "IBV_QP_RNR_RETRY",
    "IBV_QP_RQ_PSN",
    "IBV_QP_MAX_QP_RD_ATOMIC",
    "IBV_QP_ALT_PATH",
    "IBV_QP_MIN_RNR_TIMER",
    "IBV_QP_SQ_PSN",
    "IBV_QP_MAX_DEST_RD_ATOMIC",
    "IBV_QP_PATH_MIG_STATE",
    "IBV_QP_CAP",
    "IBV_QP_DEST_QPN",
};

/// "IBV_QP_PORT, IBV_QP_QKEY", for one line of the log.
struct AttributeNames {
  char text[640] = "";

  explicit AttributeNames(int mask) noexcept {
    std::size_t used = 0;
    for (int bit = 0; bit < 32; ++bit) {
      if ((static_cast<unsigned>(mask) >> bit & 1) == 0) continue;
      const char* name = "an unknown attribute";
      if (bit < static_cast<int>(std::size(kAttributeNames))) name = kAttributeNames[bit];
      if ((1 << bit) == IBV_QP_RATE_LIMIT) name = "IBV_QP_RATE_LIMIT";
      const int written =
          std::snprintf(text + used, sizeof text - used, "%s%s", used == 0 ? "" : ", ", name);
      if (written < 0 || static_cast<std::size_t>(written) >= sizeof text - used) return;
      used += static_cast<std::size_t>(written);
    }
  }
};

/// One refused value: which attribute, what it was, what it may be.
int refuse_value(const Qp& qp, const char* attribute, unsigned long value, unsigned long lowest,
                 unsigned long highest) noexcept {
  log_error("ibv_modify_qp: QP 0x%06x: %s is %lu, but must be from %lu to %lu", qp.plain.qp_num,
            attribute, value, lowest, highest);
  return EINVAL;
}

int check_range(const Qp& qp, const char* attribute, unsigned long value, unsigned long lowest,
                unsigned long highest) noexcept {
  if (value >= lowest && value <= highest) return 0;
  return refuse_value(qp, attribute, value, lowest, highest);
}

/// What the QP's device allows. The port is the one that this call sets, or else the QP's; the
/// first one speaks for a port that does not exist, which check_values refuses.
struct Limits {
  ibv_device_attr_ex device{};
  ibv_port_attr port{};
  std::uint32_t port_count = 0;

  int ask(Context& context, std::uint8_t port_number) noexcept {
    port_count = context.port_count;
    if (const int error = table_of(context).query_device(context, device)) return error;
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
    log_error("ibv_modify_qp: QP 0x%06x: %s needs is_global and a GID index on a RoCE port",
              qp.plain.qp_num, attribute);
    return EINVAL;
  }
  return 0;
}

int check_values(const Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  constexpr unsigned long kFiveBits = 31;
  constexpr unsigned long kThreeBits = 7;
  constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                               IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL |
                               IBV_ACCESS_FLUSH_PERSISTENT;
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  Context& context = context_of(qp);
  const std::uint8_t port = has(IBV_QP_PORT) ? attr.port_num : qp.attributes.port_num;
  Limits limits;
  if (const int error = limits.ask(context, port)) return error;
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
    constexpr auto kOptional = static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
    if ((attr.qp_access_flags & ~(kRights | kOptional)) != 0) {
      log_error("ibv_modify_qp: QP 0x%06x: IBV_QP_ACCESS_FLAGS has unknown bits 0x%x",
                qp.plain.qp_num, attr.qp_access_flags & ~(kRights | kOptional));
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
                            static_cast<unsigned long>(limits.port.active_mtu))) {
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

/// A data path that meets an error moves the state on its own, beside whoever looks.
ibv_qp_state state_of(const Qp& qp) noexcept {
  return __atomic_load_n(&qp.plain.state, __ATOMIC_RELAXED);
}

}  // namespace

const char* qp_state_name(ibv_qp_state state) noexcept {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto index = static_cast<unsigned>(state);
  return index < std::size(kNames) ? kNames[index] : "?";
}

int check_transition(const Qp& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state& from,
                     ibv_qp_state& to) noexcept {
  const ibv_qp_state current = state_of(qp);
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != current) {
    log_error("ibv_modify_qp: QP 0x%06x: IBV_QP_CUR_STATE says %s, but it is in %s",
              qp.plain.qp_num, qp_state_name(attr.cur_qp_state), qp_state_name(current));
    return EINVAL;
  }
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : current;
  const QpTransition* const row = find_qp_transition(qp.plain.qp_type, current, next);
  if (row == nullptr) {
    log_error("ibv_modify_qp: QP 0x%06x: IBV_QP_STATE cannot go from %s to %s", qp.plain.qp_num,
              qp_state_name(current), qp_state_name(next));
    return EINVAL;
  }
  if (const int missing = row->required & ~mask) {
    log_error("ibv_modify_qp: QP 0x%06x: %s to %s needs %s", qp.plain.qp_num,
              qp_state_name(current), qp_state_name(next), AttributeNames(missing).text);
    return EINVAL;
  }
  if (const int extra = mask & ~(row->required | row->optional | IBV_QP_STATE)) {
    log_error("ibv_modify_qp: QP 0x%06x: %s to %s does not take %s", qp.plain.qp_num,
              qp_state_name(current), qp_state_name(next), AttributeNames(extra).text);
    return EINVAL;
  }
  if (const int error = check_values(qp, attr, mask)) return error;
  from = current;
  to = next;
  return 0;
}

void apply_attributes(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  ibv_qp_attr& kept = qp.attributes;
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  if (has(IBV_QP_STATE)) {
    qp.plain.state = attr.qp_state;
    if (attr.qp_state == IBV_QPS_RESET) {
      kept = {};
      qp.attributes_set = 0;
      return;
    }
  }
  if (has(IBV_QP_EN_SQD_ASYNC_NOTIFY)) kept.en_sqd_async_notify = attr.en_sqd_async_notify;
  if (has(IBV_QP_ACCESS_FLAGS)) kept.qp_access_flags = attr.qp_access_flags;
  if (has(IBV_QP_PKEY_INDEX)) kept.pkey_index = attr.pkey_index;
  if (has(IBV_QP_PORT)) kept.port_num = attr.port_num;
  if (has(IBV_QP_QKEY)) kept.qkey = attr.qkey;
  if (has(IBV_QP_AV)) kept.ah_attr = attr.ah_attr;
  if (has(IBV_QP_PATH_MTU)) kept.path_mtu = attr.path_mtu;
  if (has(IBV_QP_TIMEOUT)) kept.timeout = attr.timeout;
  if (has(IBV_QP_RETRY_CNT)) kept.retry_cnt = attr.retry_cnt;
  if (has(IBV_QP_RNR_RETRY)) kept.rnr_retry = attr.rnr_retry;
  // Sequence numbers have 24 bits on the wire; programs pass random 32.
  if (has(IBV_QP_RQ_PSN)) kept.rq_psn = attr.rq_psn & k24Bits;
  if (has(IBV_QP_SQ_PSN)) kept.sq_psn = attr.sq_psn & k24Bits;
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) kept.max_rd_atomic = attr.max_rd_atomic;
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) kept.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (has(IBV_QP_ALT_PATH)) {
    kept.alt_ah_attr = attr.alt_ah_attr;
    kept.alt_pkey_index = attr.alt_pkey_index;
    kept.alt_port_num = attr.alt_port_num;
    kept.alt_timeout = attr.alt_timeout;
  }
  if (has(IBV_QP_MIN_RNR_TIMER)) kept.min_rnr_timer = attr.min_rnr_timer;
  if (has(IBV_QP_PATH_MIG_STATE)) kept.path_mig_state = attr.path_mig_state;
  if (has(IBV_QP_DEST_QPN)) kept.dest_qp_num = attr.dest_qp_num;
  if (has(IBV_QP_RATE_LIMIT)) kept.rate_limit = attr.rate_limit;
  qp.attributes_set |= static_cast<std::uint32_t>(mask);
}

void read_attributes(const Qp& qp, ibv_qp_attr& out) noexcept {
  out = qp.attributes;
  out.qp_state = state_of(qp);
  out.cur_qp_state = out.qp_state;
  out.cap = qp.init.cap;
}

}  // namespace verbatim
