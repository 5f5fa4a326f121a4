// SPDX-License-Identifier: BSD-2-Clause
// Text that others wrote (names of files and programs, what a peer sent), made fit for a log and a
// terminal: it shall not command the one, nor begin a line of the other. In place, so that a buffer
// of any size will do: each byte that may not stay becomes '?'. Pure functions.
#pragma once

#include <cstddef>

namespace verbatim {

/// Stay: ASCII from ' ' to '~', and well-formed UTF-8 of what is neither a control (U+0080 to
/// U+009F) nor begins a line or turns its direction (U+2028 to U+202E, U+2066 to U+2069).
void make_printable(char* text, std::size_t size) noexcept;
/// Makes a name fit to stand between other words, or in a column: only ASCII from '!' to '~' stays.
void make_printable_name(char* text, std::size_t size) noexcept;

}  // namespace verbatim
