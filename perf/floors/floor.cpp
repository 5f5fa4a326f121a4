// SPDX-License-Identifier: BSD-2-Clause
// The floors that need one function each, by their numbers in the list of floors.
#include "perf/ends/end.hpp"
#include "perf/floors/floors.hpp"

namespace verbatim::perf {

void run_floor(End& end, const Request& request, Reply& reply) {
  switch (request.floor) {
    case Floor::kMemcpy:
      return run_memcpy(end, request, reply);
    case Floor::kPipeline:
      return run_pipeline(end, request, reply);
    case Floor::kDatagramSpin:
    case Floor::kDatagramBlock:
      return run_datagram_ping_pong(end, request, reply);
    case Floor::kDatagramPlain:
    case Floor::kDatagramTrains:
      return run_datagram_bulk(end, request, reply);
    case Floor::kFutex:
      return run_futex_ping_pong(end, request, reply);
    case Floor::kYield:
      return run_yield(end, request, reply);
    case Floor::kChecksum:
      return run_checksum(end, request, reply);
    case Floor::kSum:
      return run_sum(end, request, reply);
  }
}

}  // namespace verbatim::perf
