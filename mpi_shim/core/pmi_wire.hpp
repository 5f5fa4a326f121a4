// SPDX-License-Identifier: BSD-2-Clause
// The descriptor to the launcher: text in, text out, every wait bounded. What comes is another
// program's: longer than the room, or not text, it is an error and never more than that.
#pragma once

#include <cstddef>

namespace vmpi {

/// What a launcher sends at most in one answer.
inline constexpr std::size_t kPmiRoom = 2048;

class PmiWire {
 public:
  constexpr PmiWire() noexcept = default;
  PmiWire(const PmiWire&) = delete;
  PmiWire& operator=(const PmiWire&) = delete;

  void use(int fd) noexcept {
    fd_ = fd;
    is_given_up_ = false;
  }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  void close() noexcept;

  /// How long an answer may take.
  void be_patient_for(int milliseconds) noexcept { patience_ms_ = milliseconds; }
  [[nodiscard]] int patience_ms() const noexcept { return patience_ms_; }
  /// An answer did not come in time. If it came later it would be taken for that to the next
  /// question, so nothing is read any more; that we abort can still be written.
  void give_up() noexcept { is_given_up_ = true; }
  [[nodiscard]] bool is_given_up() const noexcept { return is_given_up_; }

  [[nodiscard]] bool write(const char* text, std::size_t length) noexcept;

  enum class Got { kText, kNothing, kGone };
  /// A line without its end (PMI-1), or a record of the length that its first six bytes say
  /// (PMI-2), as a string. Waits up to `milliseconds`; kNothing: it has not come yet.
  [[nodiscard]] Got read_line(char* out, std::size_t room, int milliseconds) noexcept;
  [[nodiscard]] Got read_record(char* out, std::size_t room, int milliseconds) noexcept;

 private:
  template <class Measure>
  [[nodiscard]] Got read(char* out, std::size_t room, int milliseconds, Measure measure) noexcept;

  int fd_ = -1;
  int patience_ms_ = 30'000;
  bool is_given_up_ = false;
  std::size_t held_ = 0;
  char buffer_[kPmiRoom] = {};
};

/// The text after `key=` up to `end` or the string's end, copied. False: there is none, or it does
/// not fit. `key` stands at the beginning, or behind `end` or a space.
[[nodiscard]] bool find_value(const char* text, const char* key, char end, char* out,
                              std::size_t room) noexcept;
/// A decimal number and nothing else.
[[nodiscard]] bool parse_number(const char* text, long low, long high, long& out) noexcept;
[[nodiscard]] bool find_number(const char* text, const char* key, char end, long low, long high,
                               long& out) noexcept;

}  // namespace vmpi
