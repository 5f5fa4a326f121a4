// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/request.hpp"

namespace verbatim::perf {

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return "send";
    case Operation::kWrite:
      return "write";
    case Operation::kRead:
      return "read";
    case Operation::kFetchAdd:
      return "fetch-add";
    case Operation::kCompareSwap:
      return "cmp-swap";
  }
  return "?";
}

const char* name_of(Calls calls) {
  switch (calls) {
    case Calls::kClassic:
      return "ibv_post_send";
    case Calls::kFilled:
      return "fill, ibv_post_send";
    case Calls::kBuilt:
      return "ibv_wr_*";
    case Calls::kCursor:
      return "ibv_start_poll";
  }
  return "?";
}

const char* name_of(Waiting waiting) {
  switch (waiting) {
    case Waiting::kSpin:
      return "spin";
    case Waiting::kYield:
      return "yield";
    case Waiting::kEvent:
      return "event";
    case Waiting::kAdaptive:
      return "adaptive";
  }
  return "?";
}

const char* name_of(Service service) {
  switch (service) {
    case Service::kReliable:
      return "RC";
    case Service::kEvents:
      return "RC events";
    case Service::kDomain:
      return "RC domain";
    case Service::kShared:
      return "SRQ";
    case Service::kDatagram:
      return "UD";
  }
  return "?";
}

const char* name_of(Memory memory) { return memory == Memory::kShared ? "mapped" : "malloc"; }

}  // namespace verbatim::perf
