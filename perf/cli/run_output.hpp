// SPDX-License-Identifier: BSD-2-Clause
// What ranks print, passed on in whole lines, so that those of two ranks do not mix.
#pragma once

#include <string>
#include <string_view>

namespace verbatim::cli {

/// One stream of one rank. One thread.
class RankOutput {
 public:
  RankOutput() = default;
  /// `from` is read and owned, without waiting; `to` is a descriptor of ours; `prefix` goes before
  /// each line.
  RankOutput(int from, int to, std::string prefix);
  RankOutput(RankOutput&& other) noexcept;
  RankOutput& operator=(RankOutput&&) = delete;
  ~RankOutput() { close(); }

  /// -1: it has ended.
  int fd() const { return from_; }
  /// Passes on what is there. False: our own output is gone.
  bool pass_on();
  /// Passes on what is no whole line: a prompt, or the end.
  bool flush();
  /// Why it is gone: EPIPE where nobody reads it any more.
  int error() const { return error_; }
  bool has_partial_line() const { return !partial_.empty(); }
  void close();

 private:
  bool write_lines(std::string_view lines);
  /// A progress line, which never ends.
  bool is_written_over() const { return prefix_.empty() && partial_.starts_with('\r'); }

  int from_ = -1;
  int to_ = -1;
  int error_ = 0;
  std::string prefix_;
  std::string partial_;
};

/// Writes all of it, waiting as long as it takes. Returns 0, or the errno of what cannot be written.
int write_all(int fd, std::string_view text);

}  // namespace verbatim::cli
