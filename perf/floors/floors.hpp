// SPDX-License-Identifier: BSD-2-Clause
// What run_floor() chooses among. Each is called at both ends; those of one core do nothing at the
// far one, which sleeps meanwhile.
#pragma once

#include <cstdio>

#include "perf/ends/request.hpp"

namespace verbatim::perf {

class End;

void run_memcpy(End& end, const Request& request, Reply& reply);
void run_pipeline(End& end, const Request& request, Reply& reply);
void run_datagram_ping_pong(End& end, const Request& request, Reply& reply);
void run_datagram_bulk(End& end, const Request& request, Reply& reply);
void run_futex_ping_pong(End& end, const Request& request, Reply& reply);
void run_yield(End& end, const Request& request, Reply& reply);
void run_checksum(End& end, const Request& request, Reply& reply);
void run_sum(End& end, const Request& request, Reply& reply);

/// Largest `size` of kMemcpy and kSum.
inline constexpr std::uint64_t kLargestMemcpy = std::uint64_t{32} << 20;

inline void say_unavailable(Reply& reply, const char* why) {
  reply.unavailable = 1;
  std::snprintf(reply.message, sizeof reply.message, "%s", why);
}

inline void count_block(Reply& reply, std::uint64_t start_ns, std::uint64_t end_ns,
                        double operations, double bytes) {
  reply.elapsed_ns = static_cast<double>(end_ns - start_ns);
  reply.operations = operations;
  reply.bytes = bytes;
}

}  // namespace verbatim::perf
