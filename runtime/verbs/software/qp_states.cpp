// SPDX-License-Identifier: BSD-2-Clause
// The table of qp_transitions.hpp says which attributes a transition takes, and qp_values.hpp which
// values they may have. A refusal names the bits of ibv_qp_attr_mask as the application writes
// them.
#include "runtime/verbs/software/qp_states.hpp"

#include <cerrno>
#include <cstdio>

#include "runtime/base/log.hpp"
#include "runtime/verbs/qp_values.hpp"
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
    log_refusal("ibv_modify_qp: QP 0x%06x: IBV_QP_CUR_STATE says %s, but it is in %s",
                qp.plain.qp_num, qp_state_name(attr.cur_qp_state), qp_state_name(current));
    return EINVAL;
  }
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : current;
  const QpTransition* const row = find_qp_transition(qp.plain.qp_type, current, next);
  if (row == nullptr) {
    log_refusal("ibv_modify_qp: QP 0x%06x: IBV_QP_STATE cannot go from %s to %s", qp.plain.qp_num,
                qp_state_name(current), qp_state_name(next));
    return EINVAL;
  }
  if (const int missing = row->required & ~mask) {
    log_refusal("ibv_modify_qp: QP 0x%06x: %s to %s needs %s", qp.plain.qp_num,
                qp_state_name(current), qp_state_name(next), AttributeNames(missing).text);
    return EINVAL;
  }
  if (const int extra = mask & ~(row->required | row->optional | IBV_QP_STATE)) {
    log_refusal("ibv_modify_qp: QP 0x%06x: %s to %s does not take %s", qp.plain.qp_num,
                qp_state_name(current), qp_state_name(next), AttributeNames(extra).text);
    return EINVAL;
  }
  if (const int error = check_qp_values(qp, attr, mask, &ibv_port_attr::active_mtu)) return error;
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
