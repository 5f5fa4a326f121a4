// SPDX-License-Identifier: BSD-2-Clause
// Who polls in this process and itself sees to it that a processor is given away says so here, before the
// first completion queue is made: polls that find nothing are to leave that to it, unless the user says
// otherwise (VERBATIM_POLL, runtime/verbs/empty_polls.hpp). Any thread.
#pragma once

namespace verbatim {

void let_empty_polls_spin() noexcept;
[[nodiscard]] bool are_empty_polls_to_spin() noexcept;

}  // namespace verbatim
