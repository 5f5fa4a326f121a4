// SPDX-License-Identifier: BSD-2-Clause
// The launcher's side of PMI-1, as Hydra speaks it: ranks publish where they are, wait for each
// other, and read what others published. Text only, no descriptors; one thread.
//
// Ranks are other people: a line that is none of the protocol ends its rank, and what they may store
// is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace verbatim::cli {

struct PmiEvent {
  enum class Kind { kNone, kNonsense, kAbort };

  Kind kind = Kind::kNone;
  int code = 0;      ///< MPI_Abort's
  std::string text;  ///< of MPI_Abort, may be empty; what was wrong, fit to be printed
};

class PmiServer {
 public:
  static constexpr std::size_t kMostKey = 64;
  static constexpr std::size_t kMostValue = 1024;
  static constexpr std::size_t kMostLine = 4096;
  static constexpr std::size_t kMostStored = std::size_t{64} << 20;
  static constexpr std::size_t kMostUnread = std::size_t{64} << 10;

  PmiServer(int size, std::string job);

  /// What a rank has sent. After an event nothing more of it is read.
  PmiEvent take(int rank, std::string_view bytes);
  /// Answers that the rank has not been sent yet: whoever sends takes them out.
  std::string& answers(int rank) { return of(rank).answers; }
  /// It has begun with PMI and not said that it ends: one that is gone so has failed.
  bool is_within(int rank) const { return of(rank).has_begun && !of(rank).has_ended; }
  bool has_ended(int rank) const { return of(rank).has_ended; }
  /// It has exited. False: it never began with PMI, and others wait for it in a barrier.
  bool leave(int rank);

 private:
  struct Rank {
    std::string line;  ///< what came after the last whole line
    std::string answers;
    bool has_begun = false;
    bool has_ended = false;
    bool is_waiting = false;   ///< in the barrier
    bool is_spawning = false;  ///< between `mcmd=spawn` and `endcmd`
  };

  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  PmiEvent take_line(Rank& rank, std::string_view line);
  PmiEvent put(Rank& rank, std::string_view line);
  void get(Rank& rank, std::string_view line);
  PmiEvent begin(Rank& rank, std::string_view line);
  PmiEvent enter_barrier(Rank& rank);
  PmiEvent end(Rank& rank);

  std::vector<Rank> ranks_;
  std::string job_;
  std::unordered_map<std::string, std::string> stored_;
  std::size_t stored_bytes_ = 0;
  std::size_t waiting_ = 0;
  std::size_t ended_ = 0;  ///< that come to no barrier any more
};

/// Fit to be printed: other bytes than printable ones are '?', what is long is cut.
std::string printable_text(std::string_view text);

}  // namespace verbatim::cli
