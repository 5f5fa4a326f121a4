// SPDX-License-Identifier: BSD-2-Clause
// ibv_import_device, _pd, _mr, _dm and what undoes them. Any thread.
//
// In the process that opened the device they give what it has already: another handle to the same
// context or object, with the same address. Each handle is given up once: all but one by unimport
// (of a context: by close), and the one that destroys the object by its own verb, in any order; what
// is destroyed answers EINVAL until its last handle is given up (man ibv_import_pd: "no other can
// touch the object except for unimport"). What another process made is refused: its queues and
// tables are in its memory.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// `cmd_fd` is a duplicate of an open context's, and the context's own from now on. EBADF: no
/// descriptor. EOPNOTSUPP: of none that this process has open.
Result<Context*> import_device(int cmd_fd) noexcept;
/// ENOENT: the context has no such object.
Result<Pd*> import_pd(Context& context, std::uint32_t handle) noexcept;
Result<Mr*> import_mr(Pd& pd, std::uint32_t handle) noexcept;
Result<Dm*> import_dm(Context& context, std::uint32_t handle) noexcept;
/// Gives up one handle of an imported object. What was not imported, or has no other handle left,
/// stays as it is.
void unimport_pd(Pd& pd) noexcept;
void unimport_mr(Mr& mr) noexcept;
void unimport_dm(Dm& dm) noexcept;

}  // namespace verbatim
