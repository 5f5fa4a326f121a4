// SPDX-License-Identifier: BSD-2-Clause
// A line is put together on the stack and leaves in one write(2). The level is found at the first
// line, by whoever comes first; two threads that come together find the same one.
#include "runtime/base/log.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <unistd.h>

#include "runtime/base/printable.hpp"

namespace verbatim {
namespace {

constexpr int kUnknown = -1;
constexpr std::size_t kLineMax = 1024;
constexpr std::string_view kPrefix = "verbatim: ";
constexpr std::string_view kLevelNames[] = {"off", "error", "warn", "info", "debug"};

constinit std::atomic<int> current_level{kUnknown};

[[gnu::format(printf, 1, 0)]] void write_line(const char* format, std::va_list arguments) noexcept {
  char line[kLineMax];
  // (Not string_view::copy: unoptimised, it calls into libstdc++.)
  std::memcpy(line, kPrefix.data(), kPrefix.size());
  // One byte is kept for the newline, which also ends a line that was cut.
  const std::size_t room = sizeof line - kPrefix.size() - 1;
  const int written = std::vsnprintf(line + kPrefix.size(), room, format, arguments);
  std::size_t length = written < 0 ? 0 : static_cast<std::size_t>(written);
  if (length >= room) length = room - 1;
  length += kPrefix.size();
  // Names come from files and from the environment. Also what was cut within a character.
  make_printable(line + kPrefix.size(), length - kPrefix.size());
  line[length++] = '\n';
  // A partial or refused write has nobody to be told to.
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line, length);
}

[[gnu::format(printf, 1, 2)]] void write_formatted(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

int find_level() noexcept {
  const char* text = ::secure_getenv("VERBATIM_LOG");
  int level = static_cast<int>(LogLevel::kWarn);
  bool known = text == nullptr || *text == '\0';
  for (int i = 0; !known && i < static_cast<int>(std::size(kLevelNames)); ++i) {
    if (kLevelNames[i] == text) {
      level = i;
      known = true;
    }
  }
  int expected = kUnknown;
  if (!current_level.compare_exchange_strong(expected, level, std::memory_order_relaxed)) {
    return expected;
  }
  if (!known) {
    write_formatted("VERBATIM_LOG='%.64s' is not one of off, error, warn, info, debug; using warn",
                    text);
  }
  return level;
}

[[gnu::format(printf, 2, 0)]] void log_at(LogLevel level, const char* format,
                                          std::va_list arguments) noexcept {
  const int saved = errno;
  if (log_enabled(level)) write_line(format, arguments);
  errno = saved;
}

/// Kinds of refusals that were told, by their addresses. When all places are taken, a kind is told
/// each time.
constexpr std::size_t kMostKinds = 256;
constinit std::atomic<const void*> told_kinds[kMostKinds] = {};
constinit std::atomic<bool> each_refusal{false};

bool is_first_of(const void* kind) noexcept {
  for (std::atomic<const void*>& place : told_kinds) {
    const void* known = nullptr;
    if (place.compare_exchange_strong(known, kind, std::memory_order_relaxed)) return true;
    if (known == kind) return false;
  }
  return true;
}

[[gnu::format(printf, 2, 0)]] void log_refusal_at(const void* kind, const char* format,
                                                  std::va_list arguments) noexcept {
  if (each_refusal.load(std::memory_order_relaxed))
    log_at(LogLevel::kWarn, format, arguments);
  else if (log_enabled(LogLevel::kInfo) && (log_enabled(LogLevel::kDebug) || is_first_of(kind)))
    log_at(LogLevel::kInfo, format, arguments);
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  int current = current_level.load(std::memory_order_relaxed);
  if (current == kUnknown) current = find_level();
  return static_cast<int>(level) <= current;
}

void log_error(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_at(LogLevel::kError, format, arguments);
  va_end(arguments);
}

void log_warn(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_at(LogLevel::kWarn, format, arguments);
  va_end(arguments);
}

void log_info(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_at(LogLevel::kInfo, format, arguments);
  va_end(arguments);
}

void log_refusal(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_refusal_at(format, format, arguments);
  va_end(arguments);
}

void log_refusal_of(const void* kind, const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_refusal_at(kind, format, arguments);
  va_end(arguments);
}

void tell_each_refusal(bool each) noexcept { each_refusal.store(each, std::memory_order_relaxed); }

void log_debug(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log_at(LogLevel::kDebug, format, arguments);
  va_end(arguments);
}

}  // namespace verbatim
