// SPDX-License-Identifier: BSD-2-Clause
// What was wrong with a request, from what its queue still holds of it. Any thread; cold.
#pragma once

#include "providers/uverbs/failures.hpp"

namespace verbatim::uverbs {

/// Fills the cause, and what belongs to it, by `failure.status`.
void judge_request(Qp& qp, const SeenRequest& seen, Failure& failure) noexcept;

}  // namespace verbatim::uverbs
