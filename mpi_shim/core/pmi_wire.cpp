// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/pmi_wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace vmpi {
namespace {

std::int64_t now_ms() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// True: something may be done with the descriptor, if only to hear that it is closed.
bool wait_for_fd(int fd, short events, std::int64_t until) noexcept {
  for (;;) {
    const std::int64_t left = until - now_ms();
    pollfd asked{fd, events, 0};
    const int found = ::poll(&asked, 1, left < 0 ? 0 : static_cast<int>(left));
    if (found > 0) return true;
    if (found == 0) return false;
    if (errno != EINTR) return true;
  }
}

constexpr std::size_t kIncomplete = 0;
constexpr std::size_t kBroken = ~std::size_t{0};

}  // namespace

void PmiWire::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  held_ = 0;
}

bool PmiWire::write(const char* text, std::size_t length) noexcept {
  if (!is_open()) return false;
  const std::int64_t until = now_ms() + patience_ms_;
  bool is_socket = true;
  while (length != 0) {
    if (!wait_for_fd(fd_, POLLOUT, until)) return false;
    const ssize_t sent = is_socket ? ::send(fd_, text, length, MSG_NOSIGNAL | MSG_DONTWAIT)
                                   : ::write(fd_, text, length);
    if (sent < 0 && errno == ENOTSOCK && is_socket) {
      is_socket = false;
      continue;
    }
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    text += sent;
    length -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// `measure(held)`: bytes of the first answer in buffer_, kIncomplete or kBroken; it says by
/// reference where its text begins and how long that is.
template <class Measure>
PmiWire::Got PmiWire::read(char* out, std::size_t room, int milliseconds,
                           Measure measure) noexcept {
  if (!is_open() || is_given_up_) return Got::kGone;
  const std::int64_t until = now_ms() + milliseconds;
  for (;;) {
    std::size_t from = 0;
    std::size_t length = 0;
    const std::size_t whole = measure(held_, from, length);
    if (whole == kBroken) return Got::kGone;
    if (whole != kIncomplete) {
      if (length >= room) return Got::kGone;
      std::memcpy(out, buffer_ + from, length);
      out[length] = '\0';
      held_ -= whole;
      std::memmove(buffer_, buffer_ + whole, held_);
      return Got::kText;
    }
    if (held_ == sizeof buffer_) return Got::kGone;
    if (!wait_for_fd(fd_, POLLIN, until)) return Got::kNothing;
    const ssize_t got = ::read(fd_, buffer_ + held_, sizeof buffer_ - held_);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Got::kGone;
    held_ += static_cast<std::size_t>(got);
  }
}

PmiWire::Got PmiWire::read_line(char* out, std::size_t room, int milliseconds) noexcept {
  return read(out, room, milliseconds,
              [this](std::size_t held, std::size_t&, std::size_t& length) noexcept {
                const auto* const end = static_cast<const char*>(std::memchr(buffer_, '\n', held));
                if (end == nullptr) return kIncomplete;
                length = static_cast<std::size_t>(end - buffer_);
                return length + 1;
              });
}

PmiWire::Got PmiWire::read_record(char* out, std::size_t room, int milliseconds) noexcept {
  return read(out, room, milliseconds,
              [this](std::size_t held, std::size_t& from, std::size_t& length) noexcept {
                from = 6;
                if (held < from) return kIncomplete;
                char digits[7];
                std::memcpy(digits, buffer_, 6);
                digits[6] = '\0';
                char* end = nullptr;
                const long said = std::strtol(digits, &end, 10);
                if (end == digits || said <= 0 || said > static_cast<long>(kPmiRoom) - 6)
                  return kBroken;
                length = static_cast<std::size_t>(said);
                return held < from + length ? kIncomplete : from + length;
              });
}

bool find_value(const char* text, const char* key, char end, char* out, std::size_t room) noexcept {
  const std::size_t key_length = std::strlen(key);
  for (const char* at = text; (at = std::strstr(at, key)) != nullptr; ++at) {
    if (at != text && at[-1] != end && at[-1] != ' ') continue;
    if (at[key_length] != '=') continue;
    const char* const value = at + key_length + 1;
    std::size_t length = 0;
    while (value[length] != '\0' && value[length] != end && value[length] != '\n') ++length;
    if (length >= room) return false;
    std::memcpy(out, value, length);
    out[length] = '\0';
    return true;
  }
  return false;
}

bool parse_number(const char* text, long low, long high, long& out) noexcept {
  if (*text != '-' && (*text < '0' || *text > '9')) return false;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < low || value > high) return false;
  out = value;
  return true;
}

bool find_number(const char* text, const char* key, char end, long low, long high,
                 long& out) noexcept {
  char digits[24];
  return find_value(text, key, end, digits, sizeof digits) && parse_number(digits, low, high, out);
}

}  // namespace vmpi
