// SPDX-License-Identifier: BSD-2-Clause
// The launcher's side of PMI, as far as ranks.cpp needs it: text in, text out. PMI-1 is what the
// server of `verbatim run` says; here is what it does not have: PMI-2, as Slurm speaks it, ranks that
// come by a port, and launchers that say nothing, or what is not so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "perf/cli/run_pmi.hpp"

namespace verbatim::harness {

/// By command of a rank ("init"), or command and key ("get verbatim-costs"): what is answered instead, nothing
/// if empty. In PMI-2 without the length of a record.
using PmiAnswers = std::map<std::string, std::string>;

class PmiServer {
 public:
  PmiServer(int ranks, PmiAnswers answers)
      : pmi1_{ranks, "kvs_test_0"},
        answers_{std::move(answers)},
        clients_(static_cast<std::size_t>(ranks)) {}

  /// What came from a rank; answers are in `to_send` of it, and of others when a barrier ends.
  void hear(int rank, const std::string& bytes);
  std::string take_answer(int rank);
  int aborted_with() const { return aborted_with_; }
  /// What was no PMI; empty: nothing.
  const std::string& nonsense() const { return nonsense_; }

 private:
  struct Client {
    std::string held;
    std::string to_send;
    bool is_pmi2 = false;
  };
  void answer(int rank, const std::string& request);
  void answer_pmi1(int rank, const std::string& command, const std::string& request);
  void answer_pmi2(Client& client, int rank, const std::string& command,
                   const std::string& request);
  void enter_fence();

  cli::PmiServer pmi1_;
  PmiAnswers answers_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> pairs_;  ///< of PMI-2
  std::size_t waiting_ = 0;
  int aborted_with_ = -1;
  std::string nonsense_;
};

}  // namespace verbatim::harness
