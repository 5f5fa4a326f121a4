// SPDX-License-Identifier: BSD-2-Clause
//
// An opened shm device, and what its memory regions and address handles are.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/memory/region_fast.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim::shm {

struct Context : verbatim::Context {
  explicit Context(Device& owner) noexcept : verbatim::Context(owner) {}
  SoftEvents events;
  bool ethernet = false;                      ///< VERBATIM_SHM_LINK when it was opened
  bool shows_arenas = true;                   ///< VERBATIM_SHM_MAP when it was opened
  bool is_inherited = false;                  ///< a forked child's copy of its parent's
  std::atomic<bool> inheritance_told{false};  ///< and the program was told so
  std::atomic<std::uint32_t> counters{0};     ///< completion counters that there are
  Context* next_live = nullptr;               ///< live.opened
  Context* prev_live = nullptr;

  static Context& of(ibv_context* handle) noexcept {
    return static_cast<Context&>(verbatim::Context::from(handle));
  }
};

/// Says so in the log, the first time for its context, if the parent opened it.
[[gnu::cold]] void tell_if_inherited(Context& context, const char* verb) noexcept;
/// For verbs that are no slots of the table: whether the parent opened it; then that is said too.
bool is_inherited(ibv_context& context, const char* verb) noexcept;

/// The LID of a device of this host, by its number.
inline std::uint16_t lid_of_device(std::uint32_t number) noexcept {
  return static_cast<std::uint16_t>(number + 1);
}

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
