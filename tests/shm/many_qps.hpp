// SPDX-License-Identifier: BSD-2-Clause
//
// Far more queue pairs between two processes than a completion queue has doorbells.
#pragma once

#include <cstdint>

namespace verbatim::harness {

/// Makes `count` connections on one completion queue a side; each delivers a message, `batch` of
/// them at a time, which divides `count`.
void many_qps_each_deliver(std::uint32_t count, std::uint32_t batch);

}  // namespace verbatim::harness
