// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace verbatim::cli {
namespace {

/// A line that is longer is passed on in parts.
constexpr std::size_t kLongestLine = std::size_t{256} << 10;

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait = {fd, POLLOUT, 0};
      (void)poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

RankOutput::RankOutput(int from, int to, std::string prefix)
    : from_{from}, to_{to}, prefix_{std::move(prefix)} {}

RankOutput::RankOutput(RankOutput&& other) noexcept
    : from_{std::exchange(other.from_, -1)},
      to_{other.to_},
      prefix_{std::move(other.prefix_)},
      partial_{std::move(other.partial_)} {}

void RankOutput::close() {
  if (from_ >= 0) ::close(from_);
  from_ = -1;
}

bool RankOutput::write_lines(std::string_view lines) {
  if (prefix_.empty()) return (error_ = write_all(to_, lines)) == 0;
  std::string prefixed;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const std::string_view line = lines.substr(0, end == std::string_view::npos ? end : end + 1);
    prefixed.append(prefix_).append(line);
    if (end == std::string_view::npos) prefixed += '\n';
    lines.remove_prefix(line.size());
  }
  return (error_ = write_all(to_, prefixed)) == 0;
}

bool RankOutput::pass_on() {
  char bytes[16384];
  // Bounded, so that one that prints without end leaves the others their turn.
  for (int i = 0; i < 16; ++i) {
    const ssize_t got = ::read(from_, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return !is_written_over() || flush();
    if (got <= 0) {
      close();
      return flush();
    }
    const std::string_view news(bytes, static_cast<std::size_t>(got));
    const auto last = news.rfind('\n');
    if (last == std::string_view::npos) {
      partial_ += news;
      if (partial_.size() > kLongestLine && !flush()) return false;
      continue;
    }
    partial_ += news.substr(0, last + 1);
    if (!write_lines(partial_)) return false;
    partial_ = news.substr(last + 1);
  }
  return true;
}

bool RankOutput::flush() {
  if (partial_.empty()) return true;
  const std::string rest = std::exchange(partial_, {});
  return write_lines(rest);
}

}  // namespace verbatim::cli
