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

/// Adds a time in the unit in which it reads best.
void add_time(TextLine& line, std::uint64_t ns) noexcept;
/// Adds a range: "[0x1000, 0x1800)".
void add_range(TextLine& line, std::uint64_t first, std::uint64_t bytes) noexcept;

/// The causes of which only the other side knows more, whole: unseen_error_text.cpp. False: another
/// one.
bool add_unseen_cause(TextLine& line, const Failure& failure) noexcept;

/// The cause, and behind "; fix: " the remedy.
void add_cause(TextLine& line, const Failure& failure) noexcept;

}  // namespace verbatim
