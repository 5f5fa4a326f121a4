// SPDX-License-Identifier: BSD-2-Clause
// Numbered traffic over a line that may lose, repeat and reorder.
#pragma once

#include <cstdint>

namespace verbatim::vm {

/// Both ways at once, from rxe0 and from rxe1, `count` of each: every number arrives once and in
/// order, with its own bytes. Ends the process where not.
void sends(std::uint64_t count);
void writes_with_immediate(std::uint64_t count);
/// What each got is what the ones before it made, and all of them make the sum.
void additions(std::uint64_t count);
void reads(std::uint64_t count);
/// May be lost, where `whole` does not say that none is; comes once, and as it was sent.
void datagrams(std::uint64_t count, bool whole);

}  // namespace verbatim::vm
