// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/asking.hpp"

#include <stdexcept>
#include <vector>

#include "perf/ends/wire.hpp"
#include "perf/support/interrupt.hpp"

namespace verbatim::perf {
namespace {

// Far more than any block takes, also on a loaded machine under a sanitizer.
constexpr int kBlockTimeoutMs = 60'000;

Reply await_replies(std::span<const Asked> ends, const std::string& what) {
  Reply first;
  double waited_ns = 0, cpu_ns = 0, switches = 0, system_calls = 0;
  std::vector<int> waiting;
  for (const Asked& end : ends) waiting.push_back(end.socket);
  for (std::size_t left = ends.size(); left > 0; --left) {
    const std::size_t who = wait_readable(waiting, kBlockTimeoutMs);
    Reply reply;
    if (!receive_record(waiting[who], reply)) {
      throw std::runtime_error(what + ": the " + ends[who].name +
                               " process has ended unexpectedly");
    }
    if (reply.error != 0) {
      throw std::runtime_error(what + ": " + ends[who].name + " process: " + reply.message);
    }
    if (who == 0) first = reply;
    waited_ns += reply.waited_ns;
    cpu_ns += reply.cpu_ns;
    switches += reply.switches;
    system_calls += reply.system_calls;
    waiting[who] = -1;
  }
  first.waited_ns = waited_ns;
  first.cpu_ns = cpu_ns;
  first.switches = switches;
  first.system_calls = system_calls;
  return first;
}

}  // namespace

Reply ask_all(std::span<const Asked> ends, const Request& request, const std::string& what) {
  try {
    for (std::size_t i = ends.size(); i-- > 0;) send_record(ends[i].socket, request);
    return await_replies(ends, what);
  } catch (const TimedOut&) {
    throw std::runtime_error(what + ": no answer within " + std::to_string(kBlockTimeoutMs / 1000) +
                             " s");
  } catch (const std::exception&) {
    check_interrupt();  // whoever was signaled together with us may have ended first
    throw;
  }
}

}  // namespace verbatim::perf
