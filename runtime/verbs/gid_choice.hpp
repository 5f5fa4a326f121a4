// SPDX-License-Identifier: BSD-2-Clause
// Which GID of a port to connect with. Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// The best one, towards `remote` unless that is null. ENODATA: none will do.
Status pick_gid(Context& context, std::uint32_t port, const ibv_gid* remote,
                ibv_gid_entry& out) noexcept;

/// How good `entry` is; 0: it cannot lead to `remote`. Larger is better.
[[nodiscard]] std::uint32_t worth_of(const ibv_gid_entry& entry, const ibv_gid* remote) noexcept;

}  // namespace verbatim
