// SPDX-License-Identifier: BSD-2-Clause
// Lines on stderr for the people who run programs: prefix "verbatim: ", one write(2) per line, so
// that lines of several threads and processes never mix. Control code only: the data path neither
// formats nor logs. Any thread; allocates nothing; keeps errno.
//
// VERBATIM_LOG = off | error | warn | info | debug, default warn; read once, at the first line.
#pragma once

#include <atomic>

namespace verbatim {

enum class LogLevel : int { kOff = 0, kError, kWarn, kInfo, kDebug };

/// Whether a line of this level would be written: ask before gathering what only the line needs.
[[nodiscard, gnu::cold]] bool log_enabled(LogLevel level) noexcept;

/// The library cannot do what was asked, for a reason outside of the request.
[[gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void log_error(const char* format,
                                                                       ...) noexcept;
/// It goes on, but not as the user probably wants.
[[gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void log_warn(const char* format,
                                                                      ...) noexcept;
/// What was found and chosen.
[[gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void log_info(const char* format,
                                                                      ...) noexcept;
/// A request was refused for what it asks (EINVAL, EOPNOTSUPP and their like). Programs probe, so it
/// is told at `info`, once for each kind, and at `debug` each time. `kind` is an address that stands
/// for the kind, that of a literal; the first form takes the format's.
[[gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void log_refusal(const char* format,
                                                                         ...) noexcept;
[[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] void log_refusal_of(const void* kind,
                                                                            const char* format,
                                                                            ...) noexcept;
/// Has each refusal logged as warnings are; for tests.
void tell_each_refusal(bool each) noexcept;
/// Logs what only those who change the library look for.
[[gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void log_debug(const char* format,
                                                                       ...) noexcept;

/// "Said already?" for lines that must not repeat:
///   static constinit LogOnce once;
///   if (once.first()) log_warn(...);
class LogOnce {
 public:
  constexpr LogOnce() noexcept = default;
  /// True for exactly one caller.
  [[nodiscard]] bool first() noexcept {
    return !said_.load(std::memory_order_relaxed) &&
           !said_.exchange(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> said_{false};
};

}  // namespace verbatim
