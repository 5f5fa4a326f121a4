// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/qp_table.hpp"

namespace verbatim::harness {

const std::map<int, std::string>& attribute_names() {
  static const std::map<int, std::string> names = {
      {IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE"},
      {IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
      {IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
      {IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
      {IBV_QP_PORT, "IBV_QP_PORT"},
      {IBV_QP_QKEY, "IBV_QP_QKEY"},
      {IBV_QP_AV, "IBV_QP_AV"},
      {IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU"},
      {IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT"},
      {IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"},
      {IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"},
      {IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN"},
      {IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
      {IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH"},
      {IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
      {IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN"},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
      {IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"},
      {IBV_QP_CAP, "IBV_QP_CAP"},
      {IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN"},
      {IBV_QP_RATE_LIMIT, "IBV_QP_RATE_LIMIT"},
  };
  return names;
}

std::vector<int> bits_of(int mask) {
  std::vector<int> bits;
  for (int bit = 1; bit > 0 && bit <= mask; bit <<= 1) {
    if ((mask & bit) != 0) bits.push_back(bit);
  }
  return bits;
}

int ignored_of(ibv_qp_type type) {
  if (type == IBV_QPT_XRC_SEND) return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (type == IBV_QPT_XRC_RECV)
    return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  return 0;
}

std::map<std::pair<ibv_qp_state, ibv_qp_state>, Need> transitions_of(ibv_qp_type type) {
  const bool rc = type == IBV_QPT_RC;
  const bool uc = type == IBV_QPT_UC;
  const bool ud = type == IBV_QPT_UD;
  const bool xrc_send = type == IBV_QPT_XRC_SEND;
  const bool xrc_recv = type == IBV_QPT_XRC_RECV;
  const bool raw = type == IBV_QPT_RAW_PACKET;
  const bool connected = rc || uc || xrc_send || xrc_recv;
  const bool responds = rc || xrc_recv;  // answers READs and atomics
  const bool requests = rc || xrc_send;  // issues them
  std::map<std::pair<ibv_qp_state, ibv_qp_state>, Need> table;

  for (const ibv_qp_state from : kQpStates) {
    if (from == IBV_QPS_SQE && !uc && !ud) continue;
    table[{from, IBV_QPS_RESET}] = {};
    if (from != IBV_QPS_RESET) table[{from, IBV_QPS_ERR}] = {};
    if (raw && from == IBV_QPS_SQD) continue;
  }

  int identity = IBV_QP_PORT;
  if (!raw) identity |= IBV_QP_PKEY_INDEX;
  if (connected) identity |= IBV_QP_ACCESS_FLAGS;
  if (ud) identity |= IBV_QP_QKEY;
  table[{IBV_QPS_RESET, IBV_QPS_INIT}] = {identity, 0};
  table[{IBV_QPS_INIT, IBV_QPS_INIT}] = {0, identity};

  Need to_rtr{};
  if (connected) {
    to_rtr.required = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    to_rtr.optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
  }
  if (responds) to_rtr.required |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ud) to_rtr.optional = IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
  table[{IBV_QPS_INIT, IBV_QPS_RTR}] = to_rtr;

  int later = 0;
  if (connected) {
    later = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
  }
  if (responds) later |= IBV_QP_MIN_RNR_TIMER;
  if (ud) later = IBV_QP_CUR_STATE | IBV_QP_QKEY;
  if (raw) later = IBV_QP_RATE_LIMIT;

  Need to_rts{0, later};
  if (!raw) to_rts.required = IBV_QP_SQ_PSN;
  if (requests) {
    to_rts.required |=
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  if (xrc_recv) to_rts.required |= IBV_QP_TIMEOUT;
  table[{IBV_QPS_RTR, IBV_QPS_RTS}] = to_rts;
  table[{IBV_QPS_RTS, IBV_QPS_RTS}] = {0, later};

  if (!raw) {
    table[{IBV_QPS_RTS, IBV_QPS_SQD}] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
    table[{IBV_QPS_SQD, IBV_QPS_RTS}] = {0, later};
    int drained = (later & ~IBV_QP_CUR_STATE) | IBV_QP_PKEY_INDEX;
    if (connected) drained |= IBV_QP_AV;
    if (connected && !uc) drained |= IBV_QP_PORT | IBV_QP_TIMEOUT;
    if (requests) drained |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    if (responds) drained |= IBV_QP_MAX_DEST_RD_ATOMIC;
    table[{IBV_QPS_SQD, IBV_QPS_SQD}] = {0, drained};
  }
  if (ud) table[{IBV_QPS_SQE, IBV_QPS_RTS}] = {0, IBV_QP_CUR_STATE | IBV_QP_QKEY};
  if (uc) table[{IBV_QPS_SQE, IBV_QPS_RTS}] = {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS};
  return table;
}

}  // namespace verbatim::harness
