// SPDX-License-Identifier: BSD-2-Clause
// The way into the kernel of one open device: ioctl methods first, write(2) where the kernel says
// that it has none. Any thread; no lock is held around a call.
//
// What a reply must be to count as one is decided here: every output that was asked for is there.
// What the numbers in it may be is decided by who asked.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "abi/kernel/write_call.hpp"
#include "providers/uverbs/system.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::uverbs {

/// Whether the device is there. EIO, or the event DEVICE_FATAL, is a reason to ask (removal.hpp);
/// what it has answered EIO to such a question is proof, for good.
enum class Presence : std::uint8_t { kHere, kDoubted, kGone };

class CommandChannel {
 public:
  explicit CommandChannel(std::uint32_t driver, const System& system = linux_system) noexcept
      : system_(system), driver_(driver) {}

  void adopt(UniqueFd fd) noexcept { fd_ = static_cast<UniqueFd&&>(fd); }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  [[nodiscard]] kernel::IoctlCall method(unsigned object, unsigned method) const noexcept {
    return {object, method, driver_};
  }
  /// 0, the kernel's errno, or EPROTO (an output is missing). has_no_method(): use a command.
  [[nodiscard]] int call(kernel::IoctlCall& call) noexcept;
  [[nodiscard]] static bool has_no_method(int error) noexcept {
    return error == ENOTTY || error == EPROTONOSUPPORT;
  }

  /// A command of the older kind. `out` and the driver's reply are written on success only, except
  /// by an ioctl that fails half way.
  [[nodiscard]] int command(const kernel::WriteCommand& command) noexcept;
  template <class In, class Out>
  [[nodiscard]] int command(std::uint32_t number, In& in, Out& out,
                            const kernel::DriverData& driver = {}) noexcept {
    return command({number, &in, sizeof in, &out, sizeof out, driver});
  }
  /// One without a reply.
  template <class In>
  [[nodiscard]] int command(std::uint32_t number, In& in) noexcept {
    return command({number, &in, sizeof in, nullptr, 0, {}});
  }

  /// Tells the driver that rings in shared memory have news. One system call.
  [[nodiscard]] int ring(const kernel::Doorbell& bell) noexcept {
    const int error = system_.write(system_, fd_.get(), &bell, sizeof bell);
    if (error == EACCES) [[unlikely]]
      return ring_by_command(bell);
    return heard(error);
  }

  [[nodiscard]] Presence presence() const noexcept {
    return presence_.load(std::memory_order_relaxed);
  }
  [[gnu::cold]] void doubt() noexcept {
    Presence here = Presence::kHere;
    presence_.compare_exchange_strong(here, Presence::kDoubted, std::memory_order_relaxed);
  }
  /// Called before the device is asked: what makes it doubtful meanwhile makes it so anew.
  [[gnu::cold]] void forget_doubt() noexcept {
    Presence doubted = Presence::kDoubted;
    presence_.compare_exchange_strong(doubted, Presence::kHere, std::memory_order_relaxed);
  }
  /// Whether nobody knew.
  [[gnu::cold]] bool declare_gone() noexcept {
    return presence_.exchange(Presence::kGone, std::memory_order_relaxed) != Presence::kGone;
  }

 private:
  /// Every answer of the kernel's passes here.
  [[nodiscard]] int heard(int error) noexcept {
    if (error == EIO) [[unlikely]]
      doubt();
    return error;
  }
  /// write(2) is refused (EACCES) to whoever has changed his rights since the file was opened, as a
  /// server does that gives up root's; an ioctl is not.
  [[gnu::cold, gnu::noinline, nodiscard]] int ring_by_command(
      const kernel::Doorbell& bell) noexcept;
  [[nodiscard]] int command_by_write(const kernel::WriteCommand& command) noexcept;

  const System& system_;
  UniqueFd fd_;
  std::uint32_t driver_;
  /// Set by the first answer that says so; any thread.
  std::atomic<bool> no_ioctl_commands_{false};
  std::atomic<Presence> presence_{Presence::kHere};
};

}  // namespace verbatim::uverbs
