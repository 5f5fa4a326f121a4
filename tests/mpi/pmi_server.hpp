// SPDX-License-Identifier: BSD-2-Clause
// The launcher's side of PMI-1 and PMI-2, as far as ranks.cpp needs it: text in, text out.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace verbatim::harness {

class PmiServer {
 public:
  explicit PmiServer(int ranks, std::string is_deaf_to)
      : ranks_(ranks),
        is_deaf_to_(std::move(is_deaf_to)),
        clients_(static_cast<std::size_t>(ranks)) {}

  /// What came from a rank; answers are in `to_send` of it, and of others when a barrier ends.
  void hear(int rank, const std::string& bytes);
  std::string take_answer(int rank);
  int aborted_with() const { return aborted_with_; }

 private:
  struct Client {
    std::string held;
    std::string to_send;
    bool is_pmi2 = false;
    bool is_waiting = false;
  };
  void answer(Client& client, int rank, const std::string& request);
  void answer_pmi1(Client& client, const std::string& command, const std::string& request);
  void answer_pmi2(Client& client, int rank, const std::string& command,
                   const std::string& request);
  void enter_barrier(Client& client);

  int ranks_;
  std::string is_deaf_to_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> pairs_;
  int waiting_ = 0;
  int aborted_with_ = -1;
};

}  // namespace verbatim::harness
