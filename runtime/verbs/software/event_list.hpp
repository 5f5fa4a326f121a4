// SPDX-License-Identifier: BSD-2-Clause
// A first-in first-out list of the EventLinks inside objects. Not locked: its owner is. Removing
// from the middle walks the list; only destroying an object with waiting events does that.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim {

class EventList {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

  /// REQUIRES: `link` is in no list.
  void append(EventLink& link) noexcept {
    link.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &link;
    last_ = &link;
  }

  [[nodiscard]] EventLink* first() const noexcept { return first_; }

  /// Null when empty.
  EventLink* take_first() noexcept {
    EventLink* const link = first_;
    if (link != nullptr) {
      first_ = link->next;
      if (first_ == nullptr) last_ = nullptr;
    }
    return link;
  }

  /// REQUIRES: `link` is in this list.
  void remove(EventLink& link) noexcept {
    EventLink* before = nullptr;
    for (EventLink* at = first_; at != &link; at = at->next) before = at;
    (before == nullptr ? first_ : before->next) = link.next;
    if (last_ == &link) last_ = before;
  }

 private:
  EventLink* first_ = nullptr;
  EventLink* last_ = nullptr;
};

}  // namespace verbatim
