// SPDX-License-Identifier: BSD-2-Clause
// What the service thread does about names that somebody removes: says so, brings them back, says
// so.
#include <sys/epoll.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "providers/shm/fabric/service.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000'000;
constexpr std::uint64_t kHealNs = 1'000'000'000;
/// When all who were in the folder come back at once, its lock is taken for a moment.
constexpr std::uint64_t kSoonNs = 10'000'000;

}  // namespace

bool Service::look_at_names(std::uint64_t now, std::uint64_t fresh_ns) noexcept {
  const bool were_whole = names_.are_whole();
  if (names_.look(now, fresh_ns)) return true;
  if (were_whole && !on_thread()) wake();
  return false;
}

std::uint64_t Service::tend_names(std::uint64_t now, bool is_busy) noexcept {
  if (!is_down_) {
    const bool is_due = is_busy && now >= next_look_;
    if (names_.are_whole() && !is_due && !doubted_.load(std::memory_order_relaxed)) return kForEver;
    next_look_ = now + kLookNs;
    (void)doubted_.exchange(false, std::memory_order_acquire);
    if (names_.look(now, is_due ? 0 : OwnNames::kFreshNs)) return kForEver;
    // Without descriptors nothing is found anywhere: that is said, instead.
    if (!has_its_descriptors_now()) return now;
    is_down_ = true;
    heal_error_ = 0;
    next_heal_ = now;
    OwnNames::Reason reason;
    names_.say_why(reason);
    log_error(
        "the fabric folder %s: %s. The port is down: who is connected stays so, but this "
        "process and those that it has yet to meet do not find each other. Making it anew",
        around_.folder.path(), reason.text);
    around_.hooks.names_stand(false);
  }
  if (now < next_heal_) return next_heal_;
  OwnNames::Reason reason;
  const int error = heal_names(reason);
  if (error != 0) {
    if (!has_its_descriptors_now()) return now;
    // ENOENT: the folder went once more, behind our look at it.
    const bool is_passing = error == EBUSY || error == ENOENT;
    if (!is_passing && error != heal_error_) {
      log_error("the port stays down, which is looked at each second: %s", reason.text);
      heal_error_ = error;
    }
    next_heal_ = now + (is_passing ? kSoonNs : kHealNs);
    return next_heal_;
  }
  is_down_ = false;
  names_.declare_whole();
  log_warn("the fabric folder %s is made anew, our names in it too: the port is active",
           around_.folder.path());
  around_.hooks.names_stand(true);
  return kForEver;
}

int Service::heal_names(OwnNames::Reason& reason) noexcept {
  if (const int error = names_.heal(reason); error != 0) return error;
  __atomic_store_n(&around_.segment.head().fabric, around_.folder.number(), __ATOMIC_RELAXED);
  // Whom we meet from now on looks for the place of our wake socket in the file system of this
  // folder, which may be another one. Who knows us rings the one that he was told of.
  WakeSocket wakes;
  int error = wakes.open(around_.folder);
  if (error == 0) {
    if (peer_wakes_.tell_of_one_beside(wakes)) return 0;
    if (!watch(wakes.fd(), peer_wake_source_)) error = errno;
  }
  if (error == 0) {
    peer_wakes_.tell_of(static_cast<WakeSocket&&>(wakes));
  } else {
    std::snprintf(reason.text, sizeof reason.text,
                  "a socket by which newcomers could wake us: %s%s", std::strerror(error),
                  error == EMFILE ? " (raise 'ulimit -n')" : "");
  }
  return error;
}

}  // namespace verbatim::shm
