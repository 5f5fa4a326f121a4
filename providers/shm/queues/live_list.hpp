// SPDX-License-Identifier: BSD-2-Clause
//
// Objects linked through their own next_live and prev_live. Not locked: its owner is. Each step
// leaves a list that can be walked forwards, since a fork may copy it at any moment.
#pragma once

#include <atomic>

namespace verbatim::shm {

template <class Object>
struct LiveList {
  Object* first = nullptr;

  void add(Object& object) noexcept {
    object.next_live = first;
    object.prev_live = nullptr;
    if (first != nullptr) first->prev_live = &object;
    std::atomic_signal_fence(std::memory_order_release);
    first = &object;
  }

  /// Does nothing when it was removed before.
  void remove(Object& object) noexcept {
    if (object.prev_live != nullptr)
      object.prev_live->next_live = object.next_live;
    else if (first == &object)
      first = object.next_live;
    if (object.next_live != nullptr) object.next_live->prev_live = object.prev_live;
    object.next_live = object.prev_live = nullptr;
  }
};

}  // namespace verbatim::shm
