// SPDX-License-Identifier: BSD-2-Clause
// Failures in words: vbt_explain, and the line that a provider logs. Any thread; allocates nothing.
#pragma once

#include <cstddef>

#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// verbatim/explain.h: the length of the line, or a negative errno.
int explain(Qp& qp, const FailedCompletion* completion, char* text, std::size_t size) noexcept;

/// What a line tells of our own queue pair: a copy, since the queue pair may go before the line.
struct OwnEnd {
  std::uint32_t qpn = 0;
  ibv_qp_type type = IBV_QPT_RC;
};
[[nodiscard]] inline OwnEnd own_end(const Qp& qp) noexcept {
  return {qp.plain.qp_num, qp.plain.qp_type};
}

/// The line for `failure`; `completion` is what it is asked about (nullptr: the failure itself).
/// Its length, as snprintf tells it.
std::size_t describe_failure(const OwnEnd& own, const Failure& failure,
                             const FailedCompletion* completion, char* text,
                             std::size_t size) noexcept;
inline std::size_t describe_failure(const Qp& qp, const Failure& failure,
                                    const FailedCompletion* completion, char* text,
                                    std::size_t size) noexcept {
  return describe_failure(own_end(qp), failure, completion, text, size);
}

/// The program's own name as a tool or a peer would print it: at most 15 printable characters.
ProgramName printable_name(std::int32_t pid, const char* name, std::size_t most) noexcept;

}  // namespace verbatim
