// SPDX-License-Identifier: BSD-2-Clause
//
// An opened shm device, and what its memory regions and address handles are.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/region_fast.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim::shm {

struct Context : verbatim::Context {
  explicit Context(Device& owner) noexcept : verbatim::Context(owner) {}
  SoftEvents events;
  bool ethernet = false;                      ///< VERBATIM_SHM_LINK when it was opened
  bool shows_arenas = true;                   ///< VERBATIM_SHM_MAP when it was opened
  std::atomic<bool> inheritance_told{false};  ///< inherited.hpp
  std::atomic<std::uint32_t> counters{0};     ///< completion counters that there are
  Context* next_live = nullptr;               ///< live.opened
  Context* prev_live = nullptr;

  static Context& of(ibv_context* handle) noexcept {
    return static_cast<Context&>(verbatim::Context::from(handle));
  }
};

struct Mr : verbatim::Mr {
  Region shown{};          ///< what was asked for; its record says it in its own way
  bool in_arena = false;   ///< arena_hold counts shown.length bytes at shown.address
  bool may_change = true;  ///< ibv_rereg_mr: it is an application's own memory
  /// Where that memory lies, whether or not peers are shown it (windows may be): number + 1, or 0.
  std::uint32_t arena = 0;
  std::uint64_t arena_offset = 0;
  void* mapping = nullptr;  ///< of a dma-buf
  std::size_t mapping_bytes = 0;
};

}  // namespace verbatim::shm
