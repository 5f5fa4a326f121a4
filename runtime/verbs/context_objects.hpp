// SPDX-License-Identifier: BSD-2-Clause
// Which objects a context has, so that ibv_close_device can end those that the application left
// (man ibv_close_device: it need not release them first). Any thread; a few stores under a lock, in
// verbs that create and destroy.
//
// What is promised of an object that was left: it has ended as if destroyed. Its memory stays, so
// that the verb that destroys it may still be called, once, and answers 0; any other verb on it
// answers EINVAL. The context itself must not be used any more.
#pragma once

#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// Guards the lists, and the counts of imports.
extern SpinLock objects_lock;
extern Context* first_open_context;

/// The context goes to the application next. Pair: forget_open.
void note_open(Context& context) noexcept;
void forget_open(Context& context) noexcept;
/// Gives up one import of the context. False: there is none.
[[nodiscard]] bool end_import(Context& context) noexcept;

/// The object was made, and goes to the application next. Pair: disown.
void enlist(Context& context, ObjectKind kind, Owned& owned) noexcept;
/// The provider is about to destroy it; whoever fails to owns it again. Of one that was never listed,
/// which no verb of ours has made, nothing happens.
void delist(Context& context, Owned& owned) noexcept;

template <class Handle>
void own(Handle& object) noexcept {
  enlist(Context::from(object.plain.context), Handle::kKind, object.owned);
}
template <class Handle>
void disown(Handle& object) noexcept {
  delist(Context::from(object.plain.context), object.owned);
}

/// The provider did not destroy it after all.
template <class Handle>
void own_again(Handle& object) noexcept {
  if (object.owned.link != nullptr) own(object);
}

/// Whether the application has other handles to an object that is about to be destroyed, and keeps
/// them.
template <class Handle>
[[nodiscard]] bool has_other_handles(const Handle& object) noexcept {
  return object.owned.imports != 0 &&
         !Context::from(object.plain.context).closing.load(std::memory_order_relaxed);
}
/// It was destroyed through one of its handles; the others lead to what is left of it.
[[gnu::cold]] void leave_to_other_handles(ibv_context*& context, Owned& owned) noexcept;

/// What is left of the object that an application destroys after its context: the memory, which
/// goes now, or when the provider has done with it.
[[gnu::cold]] void give_up(Owned& owned, void* memory) noexcept;

/// The first question of each verb that destroys. True: it was left when its device was closed, or
/// destroyed by another of its handles, and this handle has been given up.
template <class Handle>
[[nodiscard]] bool was_left(Handle& object) noexcept {
  const Owned::State state = object.owned.state;
  if (state == Owned::State::kOutside || state == Owned::State::kListed) [[likely]]
    return false;
  give_up(object.owned, &object);
  return true;
}

/// Ends what the context has, in the order of ObjectKind. 0; or EBUSY: a provider could not end
/// something (it has said why), so the rest stays too. An object that a provider fails to end for
/// another reason is left to its `close`.
[[nodiscard]] int end_objects(Context& context) noexcept;
/// VERBATIM_STRICT: names what is about to be left.
void tell_left(Context& context) noexcept;

/// In a forked child, by the thread that there is. The lists can be walked at each step of a
/// change, so they are as they were.
void remake_objects_lock_in_child() noexcept;

}  // namespace verbatim
