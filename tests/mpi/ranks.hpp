// SPDX-License-Identifier: BSD-2-Clause
// Starts the ranks of an MPI program as a launcher does: a PMI-1 server over inherited descriptors
// (or a PMI-2 one, as Slurm's), bounded in time. What was started is ended and collected.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace verbatim::harness {

struct RanksOptions {
  enum class Protocol { kPmi1, kPmi2, kPort };  ///< kPort: PMI-1 over PMI_PORT and PMI_ID

  Protocol protocol = Protocol::kPmi1;
  /// Of all ranks; an empty value removes the variable.
  std::map<std::string, std::string> environment;
  int time_limit_ms = 60'000;
  /// A rank that dies ends the others too, as launchers do it. Else they have to find out.
  bool end_all_with_one = true;
  /// What the launcher says otherwise than it is (pmi_server.hpp).
  std::map<std::string, std::string> answers;
};

struct RankEnd {
  int exit_status = -1;  ///< -1 when a signal ended it
  int signal = 0;
  int after_ms = 0;  ///< since the start
};

struct RanksEnd {
  bool is_in_time = false;
  int aborted_with = -1;  ///< the code of MPI_Abort, as the launcher heard it
  std::vector<RankEnd> ranks;
  std::string output;  ///< of all, both streams, as it came

  /// All ended by themselves, in time, with 0.
  bool is_success() const;
  /// For the message of a test.
  std::string told() const;
};

RanksEnd run_ranks(int count, const std::string& program, const std::vector<std::string>& arguments,
                   const RanksOptions& options = {});

}  // namespace verbatim::harness
