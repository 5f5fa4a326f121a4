// SPDX-License-Identifier: BSD-2-Clause
// The words for one failure: what was wrong, and what to do. Explain.cpp puts who and which request
// in front.
#pragma once

#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/text_line.hpp"

namespace verbatim {

/// "RDMA_WRITE", "SEND" ... or nullptr.
const char* opcode_word(std::int32_t opcode) noexcept;
/// "LOCAL_WRITE|REMOTE_READ", "no rights".
void add_rights(TextLine& line, std::uint32_t rights) noexcept;

/// The cause, and behind "; fix: " the remedy.
void add_cause(TextLine& line, const Failure& failure) noexcept;

}  // namespace verbatim
