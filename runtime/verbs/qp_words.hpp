// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs in words, for lines that people read. Any number has one.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <iterator>

namespace verbatim {

/// "RTR", "SQD" ...
constexpr const char* qp_state_word(std::uint32_t state) noexcept {
  constexpr const char* kWords[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < std::size(kWords) ? kWords[state] : "unknown";
}

/// "RC", "UD" ...
constexpr const char* qp_type_word(std::uint32_t type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    default:
      return "driver";
  }
}

}  // namespace verbatim
