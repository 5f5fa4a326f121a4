// SPDX-License-Identifier: BSD-2-Clause
//
// An opened shm device, and what its memory regions and address handles are.
#pragma once

#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim::shm {

struct Context : verbatim::Context {
  explicit Context(Device& owner) noexcept : verbatim::Context(owner) {}
  SoftEvents events;

  static Context& of(ibv_context* handle) noexcept {
    return static_cast<Context&>(verbatim::Context::from(handle));
  }
};

struct Mr : verbatim::Mr {
  bool in_arena = false;  ///< arena_hold counts it
};

}  // namespace verbatim::shm
