// SPDX-License-Identifier: BSD-2-Clause
// The C border: three adapters, one for each way in which verbs report errors, and the slot fillers
// of the files of this folder. Each exported function validates what only C can get wrong, casts
// once, calls the runtime, converts. Which convention a verb has: its man page, and the remarks in
// infiniband/verbs/*.h.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

// The exported names of three verbs are function-like macros for applications.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/// A function that the archive shows to C programs.
#define VBT_ENTRY extern "C" [[gnu::visibility("default")]]

namespace verbatim {

/// NULL + errno, or the C handle of our object.
template <class Handle>
[[nodiscard]] auto as_pointer(Result<Handle*> result) noexcept {
  const auto plain = [](Handle* object) {
    if constexpr (requires { object->handle(); }) {
      return object->handle();
    } else if constexpr (requires { object->plain; }) {
      return &object->plain;
    } else {
      return object;
    }
  };
  using Plain = decltype(plain(nullptr));
  if (result.ok()) return plain(result.value());
  errno = result.error().code;
  return Plain{nullptr};
}

/// 0, or a positive errno as the result itself.
[[nodiscard]] inline int as_errno(Status status) noexcept { return status.error().code; }

/// 0, or -1 + errno.
[[nodiscard]] inline int as_minus_one(Status status) noexcept {
  if (status.ok()) return 0;
  errno = status.error().code;
  return -1;
}

/// Each file that answers slots of verbs_context or ibv_context.ops puts them there when a device
/// is opened, after the runtime has put the data path.
void fill_device_slots(verbs_context& slots) noexcept;
void fill_port_slots(verbs_context& slots) noexcept;
void fill_domain_slots(verbs_context& slots) noexcept;
void fill_memory_slots(verbs_context& slots) noexcept;
void fill_window_slots(verbs_context& slots) noexcept;
void fill_cq_slots(verbs_context& slots) noexcept;
void fill_srq_slots(verbs_context& slots) noexcept;
void fill_qp_slots(verbs_context& slots) noexcept;
void fill_ethernet_slots(verbs_context& slots) noexcept;
void fill_old_slots(ibv_context_ops& ops) noexcept;

}  // namespace verbatim
