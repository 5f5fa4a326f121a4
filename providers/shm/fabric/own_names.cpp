// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/own_names.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "providers/shm/fabric/connection_manager.hpp"

namespace verbatim::shm {
namespace {

[[gnu::format(printf, 2, 3)]] void write(OwnNames::Reason* reason, const char* format,
                                         ...) noexcept {
  if (reason == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reason->text, sizeof reason->text, format, arguments);
  va_end(arguments);
}

const char* fix_of(int error) noexcept { return error == EMFILE ? " (raise 'ulimit -n')" : ""; }

}  // namespace

int OwnNames::claim(std::uint32_t& block) noexcept {
  const LockGuard guard(mutex_);
  if (released_) return EIO;
  if (count_ == kMaxBlocksPerProcess) return ENOMEM;
  UniqueFd listener;
  int error = folder_.claim(block, listener);
  if (error != 0) return error;
  const std::uint64_t inode = folder_.inode_of(block);
  error = connections_.add_listener(static_cast<UniqueFd&&>(listener));
  if (error != 0) {
    folder_.release(block, inode);
    return EIO;
  }
  blocks_[count_++] = {block, inode};
  return 0;
}

int OwnNames::hold(HeldName& name, bool create, bool exclusive) noexcept {
  const LockGuard guard(mutex_);
  const int error = folder_.hold(name.text, create, exclusive, name.file);
  if (error != 0) return error;
  name.next = held_;
  held_ = &name;
  return 0;
}

void OwnNames::let_go(HeldName& name) noexcept {
  const LockGuard guard(mutex_);
  HeldName** at = &held_;
  while (*at != nullptr && *at != &name) at = &(*at)->next;
  if (*at == nullptr) {  // our parent's
    name.file.reset();
    return;
  }
  *at = name.next;
  folder_.let_go(name.text, name.file);
}

void OwnNames::release_all() noexcept {
  const LockGuard guard(mutex_);
  for (std::uint32_t k = 0; k < count_ && !released_; ++k)
    folder_.release(blocks_[k].number, blocks_[k].inode);
  released_ = true;
  folder_.leave();
}

bool OwnNames::find_loss_locked(Reason* reason) const noexcept {
  if (released_) return false;
  if (const char* const why = folder_.is_left(); why != nullptr) {
    write(reason, "%s", why);
    return true;
  }
  for (std::uint32_t k = 0; k < count_; ++k) {
    if (!folder_.lacks(blocks_[k].number, blocks_[k].inode)) continue;
    write(reason, "our name q%03x in it was removed", blocks_[k].number);
    return true;
  }
  for (const HeldName* name = held_; name != nullptr; name = name->next) {
    if (!folder_.lacks(name->text, name->file)) continue;
    write(reason, "the name %s, which we hold in it, was removed", name->text);
    return true;
  }
  return false;
}

bool OwnNames::look(std::uint64_t now, std::uint64_t fresh_ns) noexcept {
  if (!are_whole()) return false;
  if (now < looked_at_.load(std::memory_order_relaxed) + fresh_ns) return true;
  if (!mutex_.try_lock()) return true;  // somebody makes a name just now, and will hear of it
  looked_at_.store(now, std::memory_order_relaxed);
  const bool lost = find_loss_locked(nullptr);
  if (lost) {
    lost_at_.store(now, std::memory_order_relaxed);
    whole_.store(false, std::memory_order_release);
  }
  mutex_.unlock();
  return !lost;
}

void OwnNames::say_why(Reason& reason) noexcept {
  if (!mutex_.try_lock()) return;
  (void)find_loss_locked(&reason);
  mutex_.unlock();
}

int OwnNames::heal(Reason& reason) noexcept {
  if (!mutex_.try_lock()) return EBUSY;
  const int error = released_ ? EBUSY : heal_locked(reason);
  mutex_.unlock();
  return error;
}

int OwnNames::return_to_folder_locked(Reason& reason) noexcept {
  FabricFolder::Place place;
  FolderRefusal refusal;
  if (folder_.find_place(place, refusal) != 0) {
    write(&reason, "%s: %s%s", place.path, refusal.why, fix_of(refusal.error));
    return refusal.error;
  }
  // Those who have yet to leave it too are not to find there what is no longer tended.
  for (std::uint32_t k = 0; k < count_; ++k) folder_.release(blocks_[k].number, blocks_[k].inode);
  folder_.leave();
  const int error = folder_.move_to(place);
  if (error != 0) write(&reason, "%s: %s", place.path, std::strerror(error));
  return error;
}

int OwnNames::heal_locked(Reason& reason) noexcept {
  if (folder_.is_left() != nullptr) {
    if (const int error = return_to_folder_locked(reason); error != 0) return error;
  }
  int taken = 0;
  for (std::uint32_t k = 0; k < count_; ++k) {
    BlockName& block = blocks_[k];
    if (!folder_.lacks(block.number, block.inode)) continue;
    UniqueFd listener;
    int error = folder_.claim_again(block.number, listener);
    if (error == EADDRINUSE) {
      write(&reason, "another process has taken our name q%03x: end it, or us", block.number);
      taken = error;
      continue;
    }
    if (error == 0) {
      block.inode = folder_.inode_of(block.number);
      error = connections_.replace_listener(k, static_cast<UniqueFd&&>(listener));
      if (error != 0) folder_.release(block.number, block.inode);
    }
    if (error != 0) {
      write(&reason, "our name q%03x: %s%s", block.number, std::strerror(error), fix_of(error));
      return error;
    }
  }
  for (HeldName* name = held_; name != nullptr; name = name->next) {
    if (!folder_.lacks(name->text, name->file)) continue;
    if (const int error = folder_.hold_again(name->text, name->file); error != 0) {
      write(&reason, "the name %s: %s%s", name->text, std::strerror(error), fix_of(error));
      return error;
    }
  }
  return taken;
}

}  // namespace verbatim::shm
