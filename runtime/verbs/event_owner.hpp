// SPDX-License-Identifier: BSD-2-Clause
// Which member of an asynchronous event names what it is about (man ibv_get_async_event).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

enum class EventOwner : std::uint8_t { kPort, kDevice, kCq, kQp, kSrq, kWq };

/// A type that is not known is taken for a port's.
constexpr EventOwner owner_of(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return EventOwner::kCq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return EventOwner::kQp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return EventOwner::kSrq;
    case IBV_EVENT_WQ_FATAL:
      return EventOwner::kWq;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_DEVICE_SPEED_CHANGE:
      return EventOwner::kDevice;
    default:
      return EventOwner::kPort;
  }
}

}  // namespace verbatim
