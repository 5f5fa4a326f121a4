// SPDX-License-Identifier: BSD-2-Clause
// What a measuring process answers: the result of its work with what that used, or why it failed.
// Main thread.
#pragma once

#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "perf/ends/request.hpp"
#include "perf/support/affinity.hpp"
#include "perf/support/noise.hpp"

namespace verbatim::perf {

/// `work` fills in the reply that it is given.
template <class Work>
Reply reply_of(Work&& work) {
  Reply reply;
  const double waited_before = waited_for_core_ns();
  const Usage used_before = usage_now();
  try {
    work(reply);
  } catch (const std::system_error& failure) {
    reply.error = failure.code().value();
    std::snprintf(reply.message, sizeof reply.message, "%s", failure.what());
  } catch (const std::exception& failure) {
    reply.error = EIO;
    std::snprintf(reply.message, sizeof reply.message, "%s", failure.what());
  }
  const Usage used = usage_since(used_before);
  reply.cpu_ns = used.cpu_ns;
  reply.switches = used.switches;
  reply.waited_ns = waited_for_core_ns() - waited_before;
  return reply;
}

}  // namespace verbatim::perf
