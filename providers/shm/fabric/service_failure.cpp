// SPDX-License-Identifier: BSD-2-Clause
// What the service thread does when the application has closed descriptors of ours: it notices, and
// serves no more.
#include <ctime>

#include "providers/shm/fabric/service.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kFreshNs = 1'000'000;
/// Whoever closes all that he does not know is through after so long: between a look at a number
/// and its use, he would have put a file of his under it.
constexpr long kClosingNs = 20'000'000;

}  // namespace

bool Service::has_its_descriptors() const noexcept {
  return epoll_.is_ours() && wake_.is_ours() && peer_wakes_.told().is_open() &&
         connections_.has_its_listeners() && around_.folder.is_open() &&
         around_.segment.has_its_files();
}

bool Service::has_its_descriptors_lately() noexcept {
  const std::uint64_t now = now_ns();
  if (now - looked_at_ < kFreshNs) return true;
  looked_at_ = now;
  return has_its_descriptors();
}

bool Service::has_its_descriptors_now() noexcept {
  if (has_its_descriptors()) return true;
  looked_at_ = 0;
  return false;
}

void Service::fail() noexcept {
  failed_.store(true, std::memory_order_release);
  const timespec closing{.tv_sec = 0, .tv_nsec = kClosingNs};
  ::nanosleep(&closing, nullptr);
  log_error(
      "the application closed descriptors that belong to the library: its device has failed "
      "(IBV_EVENT_DEVICE_FATAL). A program that closes all that it does not know, as daemons do, "
      "has to do so before ibv_open_device. Close all contexts, then open the device anew");
  // Newcomers do not find us, and who knows us hears that we are gone: as far as what tells them is
  // still ours.
  names_.release_all();
  connections_.close(false, true);
  around_.hooks.failed();
  linger();
}

void Service::linger() noexcept {
  while (!stopping_.load(std::memory_order_acquire)) {
    const bool ticks = ticking_.load(std::memory_order_acquire);
    if (ticks) around_.hooks.tick();
    drain_doorbells();
    around_.hooks.sweep();
    (void)around_.hooks.due(now_ns());
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(ticks ? kTickNs : kSweepNs)};
    wait_clock_.sleeps_until(now_ns() + static_cast<std::uint64_t>(pause.tv_nsec));
    ::nanosleep(&pause, nullptr);
    // Nobody says anything any more, but what flushes has its time.
    wait_clock_.slept(static_cast<std::uint64_t>(pause.tv_nsec));
    wait_clock_.hear(now_ns());
  }
}

}  // namespace verbatim::shm
