// SPDX-License-Identifier: BSD-2-Clause
// Why a region could not be pinned. Any thread; control code.
#pragma once

#include <cstddef>

namespace verbatim::uverbs {

/// Writes one line: the limit, what is pinned, what was asked, and what to do.
[[gnu::cold]] void explain_pinning(std::size_t asked) noexcept;

}  // namespace verbatim::uverbs
