// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace verbatim::gate {

/// Whether the libibverbs of this process is the one that lies beside the gate: only its devices may
/// be answered for. Says once in the log when it is another. Any thread.
[[nodiscard, gnu::cold]] bool library_is_ours() noexcept;

}  // namespace verbatim::gate
