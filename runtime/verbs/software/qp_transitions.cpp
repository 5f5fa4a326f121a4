// SPDX-License-Identifier: BSD-2-Clause
// The table of qp_transitions.hpp.
#include "runtime/verbs/software/qp_transitions.hpp"

namespace verbatim {
namespace {

constexpr int kNone = 0;
constexpr int kCur = IBV_QP_CUR_STATE;
constexpr int kAccess = IBV_QP_ACCESS_FLAGS;
constexpr int kPkey = IBV_QP_PKEY_INDEX;
constexpr int kPort = IBV_QP_PORT;
constexpr int kQkey = IBV_QP_QKEY;
constexpr int kAlt = IBV_QP_ALT_PATH;
constexpr int kMig = IBV_QP_PATH_MIG_STATE;
constexpr int kMinRnr = IBV_QP_MIN_RNR_TIMER;
constexpr int kDestRd = IBV_QP_MAX_DEST_RD_ATOMIC;

constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
constexpr int kRequester = kRetries | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kConnectedLater = kAlt | kAccess | kMig;

constexpr unsigned kConnected = kRc | kUc | kXrcSend | kXrcRecv;

constexpr ibv_qp_state kReset = IBV_QPS_RESET;
constexpr ibv_qp_state kInit = IBV_QPS_INIT;
constexpr ibv_qp_state kRtr = IBV_QPS_RTR;
constexpr ibv_qp_state kRts = IBV_QPS_RTS;
constexpr ibv_qp_state kSqd = IBV_QPS_SQD;
constexpr ibv_qp_state kSqe = IBV_QPS_SQE;
constexpr ibv_qp_state kErr = IBV_QPS_ERR;

// clang-format off
constexpr QpTransition kTransitions[] = {
    // from    to      types                required             optional
    {kReset, kReset, kAnyQp,              kNone,                kNone},
    {kReset, kInit,  kConnected,          kPkey | kPort | kAccess, kNone},
    {kReset, kInit,  kUd,                 kPkey | kPort | kQkey, kNone},
    {kReset, kInit,  kRaw,                kPort,                kNone},

    {kInit,  kReset, kAnyQp,              kNone,                kNone},
    {kInit,  kErr,   kAnyQp,              kNone,                kNone},
    {kInit,  kInit,  kConnected,          kNone,                kPkey | kPort | kAccess},
    {kInit,  kInit,  kUd,                 kNone,                kPkey | kPort | kQkey},
    {kInit,  kInit,  kRaw,                kNone,                kPort},
    {kInit,  kRtr,   kRc | kXrcRecv,      kPath | kDestRd | kMinRnr, kAlt | kAccess | kPkey},
    {kInit,  kRtr,   kUc | kXrcSend,      kPath,                kAlt | kAccess | kPkey},
    {kInit,  kRtr,   kUd,                 kNone,                kPkey | kQkey},
    {kInit,  kRtr,   kRaw,                kNone,                kNone},

    {kRtr,   kReset, kAnyQp,              kNone,                kNone},
    {kRtr,   kErr,   kAnyQp,              kNone,                kNone},
    {kRtr,   kRts,   kRc,                 kRequester,           kCur | kConnectedLater | kMinRnr},
    {kRtr,   kRts,   kXrcSend,            kRequester,           kCur | kConnectedLater},
    {kRtr,   kRts,   kXrcRecv,            IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
                                                                kCur | kConnectedLater | kMinRnr},
    {kRtr,   kRts,   kUc,                 IBV_QP_SQ_PSN,        kCur | kConnectedLater},
    {kRtr,   kRts,   kUd,                 IBV_QP_SQ_PSN,        kCur | kQkey},
    {kRtr,   kRts,   kRaw,                kNone,                IBV_QP_RATE_LIMIT},

    {kRts,   kReset, kAnyQp,              kNone,                kNone},
    {kRts,   kErr,   kAnyQp,              kNone,                kNone},
    {kRts,   kRts,   kRc | kXrcRecv,      kNone,                kCur | kConnectedLater | kMinRnr},
    {kRts,   kRts,   kUc | kXrcSend,      kNone,                kCur | kConnectedLater},
    {kRts,   kRts,   kUd,                 kNone,                kCur | kQkey},
    {kRts,   kRts,   kRaw,                kNone,                IBV_QP_RATE_LIMIT},
    {kRts,   kSqd,   kConnected | kUd,    kNone,                IBV_QP_EN_SQD_ASYNC_NOTIFY},

    {kSqd,   kReset, kAnyQp,              kNone,                kNone},
    {kSqd,   kErr,   kAnyQp,              kNone,                kNone},
    {kSqd,   kRts,   kRc | kXrcRecv,      kNone,                kCur | kConnectedLater | kMinRnr},
    {kSqd,   kRts,   kUc | kXrcSend,      kNone,                kCur | kConnectedLater},
    {kSqd,   kRts,   kUd,                 kNone,                kCur | kQkey},
    {kSqd,   kSqd,   kRc,                 kNone,                kPort | IBV_QP_AV | kRetries | IBV_QP_MAX_QP_RD_ATOMIC |
                                                                kDestRd | kConnectedLater | kPkey | kMinRnr},
    {kSqd,   kSqd,   kXrcSend,            kNone,                kPort | IBV_QP_AV | kRetries | IBV_QP_MAX_QP_RD_ATOMIC |
                                                                kConnectedLater | kPkey},
    {kSqd,   kSqd,   kXrcRecv,            kNone,                kPort | IBV_QP_AV | IBV_QP_TIMEOUT | kDestRd |
                                                                kConnectedLater | kPkey | kMinRnr},
    {kSqd,   kSqd,   kUc,                 kNone,                IBV_QP_AV | kConnectedLater | kPkey},
    {kSqd,   kSqd,   kUd,                 kNone,                kPkey | kQkey},

    // Only unreliable types have an error state of their send queue alone (IBTA 10.3.1.6).
    {kSqe,   kReset, kUc | kUd,           kNone,                kNone},
    {kSqe,   kErr,   kUc | kUd,           kNone,                kNone},
    {kSqe,   kRts,   kUc,                 kNone,                kCur | kAccess},
    {kSqe,   kRts,   kUd,                 kNone,                kCur | kQkey},

    {kErr,   kReset, kAnyQp,              kNone,                kNone},
    {kErr,   kErr,   kAnyQp,              kNone,                kNone},
};
// clang-format on

}  // namespace

std::span<const QpTransition> qp_transitions() noexcept { return kTransitions; }

unsigned qp_type_bit(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
      return kRc;
    case IBV_QPT_UC:
      return kUc;
    case IBV_QPT_UD:
      return kUd;
    case IBV_QPT_XRC_SEND:
      return kXrcSend;
    case IBV_QPT_XRC_RECV:
      return kXrcRecv;
    case IBV_QPT_RAW_PACKET:
      return kRaw;
    default:
      return 0;
  }
}

const QpTransition* find_qp_transition(ibv_qp_type type, ibv_qp_state from,
                                       ibv_qp_state to) noexcept {
  const unsigned bit = qp_type_bit(type);
  for (const QpTransition& row : kTransitions) {
    if (row.from == from && row.to == to && (row.types & bit) != 0) return &row;
  }
  return nullptr;
}

}  // namespace verbatim
