// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/sync/polls.hpp"

#include <atomic>

namespace verbatim {
namespace {

constinit std::atomic<bool> are_to_spin{false};

}  // namespace

void let_empty_polls_spin() noexcept { are_to_spin.store(true, std::memory_order_relaxed); }

bool are_empty_polls_to_spin() noexcept { return are_to_spin.load(std::memory_order_relaxed); }

}  // namespace verbatim
