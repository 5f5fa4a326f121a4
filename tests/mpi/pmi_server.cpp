// SPDX-License-Identifier: BSD-2-Clause
#include "tests/mpi/pmi_server.hpp"

#include <cstdlib>

namespace verbatim::harness {
namespace {

std::string value_of(const std::string& text, const std::string& key, char end) {
  std::size_t at = 0;
  while ((at = text.find(key + "=", at)) != std::string::npos) {
    if (at == 0 || text[at - 1] == end || text[at - 1] == ' ') {
      const std::size_t from = at + key.size() + 1;
      return text.substr(from, text.find(end, from) - from);
    }
    ++at;
  }
  return {};
}

std::string record(const std::string& text) {
  std::string digits = std::to_string(text.size());
  return std::string(6 - digits.size(), ' ') + digits + text;
}

}  // namespace

std::string PmiServer::take_answer(int rank) {
  std::string taken;
  taken.swap(clients_[static_cast<std::size_t>(rank)].to_send);
  taken += pmi1_.answers(rank);
  pmi1_.answers(rank).clear();
  return taken;
}

void PmiServer::hear(int rank, const std::string& bytes) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  client.held += bytes;
  for (;;) {
    if (client.is_pmi2) {
      if (client.held.size() < 6) return;
      const auto length = static_cast<std::size_t>(std::atoi(client.held.substr(0, 6).c_str()));
      if (client.held.size() < 6 + length) return;
      const std::string request = client.held.substr(6, length);
      client.held.erase(0, 6 + length);
      answer(rank, request);
    } else {
      const std::size_t end = client.held.find('\n');
      if (end == std::string::npos) return;
      const std::string request = client.held.substr(0, end);
      client.held.erase(0, end + 1);
      answer(rank, request);
    }
  }
}

void PmiServer::answer(int rank, const std::string& request) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  const char end = client.is_pmi2 ? ';' : ' ';
  const std::string command = value_of(request, "cmd", end);
  auto other = answers_.find(command + " " + value_of(request, "key", end));
  if (other == answers_.end()) other = answers_.find(command);
  if (other != answers_.end()) {
    if (!other->second.empty())
      client.to_send += client.is_pmi2 ? record(other->second) : other->second + "\n";
  } else if (client.is_pmi2) {
    answer_pmi2(client, rank, command, request);
  } else {
    answer_pmi1(rank, command, request);
  }
}

void PmiServer::answer_pmi1(int rank, const std::string& command, const std::string& request) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  if (command == "initack") {
    client.to_send += "cmd=initack rc=0\ncmd=set size=" + std::to_string(clients_.size()) +
                      "\ncmd=set rank=" + value_of(request, "pmiid", ' ') + "\ncmd=set debug=0\n";
  } else if (command == "init" && value_of(request, "pmi_version", ' ') == "2") {
    client.is_pmi2 = true;
    client.to_send += "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
  } else if (command == "finalize") {
    // To end while others wait is no error here, as it is none for Hydra: some know who is lost.
    client.to_send += "cmd=finalize_ack\n";
  } else {
    const cli::PmiEvent event = pmi1_.take(rank, request + "\n");
    if (event.kind == cli::PmiEvent::Kind::kAbort) aborted_with_ = event.code;
    if (event.kind == cli::PmiEvent::Kind::kNonsense) nonsense_ = event.text;
  }
}

void PmiServer::enter_fence() {
  if (++waiting_ < clients_.size()) return;
  waiting_ = 0;
  for (Client& each : clients_) each.to_send += record("cmd=kvs-fence-response;rc=0;");
}

void PmiServer::answer_pmi2(Client& client, int rank, const std::string& command,
                            const std::string& request) {
  std::string& out = client.to_send;
  if (command == "fullinit") {
    out += record(
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
        ";size=" + std::to_string(clients_.size()) + ";appnum=-1;debugged=FALSE;pmiverbose=FALSE;");
  } else if (command == "info-getjobattr") {
    out += record("cmd=info-getjobattr-response;rc=0;found=FALSE;");
  } else if (command == "kvs-put") {
    pairs_[value_of(request, "key", ';')] = value_of(request, "value", ';');
    out += record("cmd=kvs-put-response;rc=0;");
  } else if (command == "kvs-get") {
    const auto found = pairs_.find(value_of(request, "key", ';'));
    out += record(found == pairs_.end()
                      ? "cmd=kvs-get-response;rc=0;found=FALSE;"
                      : "cmd=kvs-get-response;rc=0;found=TRUE;value=" + found->second + ";");
  } else if (command == "kvs-fence") {
    enter_fence();
  } else if (command == "finalize") {
    out += record("cmd=finalize-response;rc=0;");
  } else if (command == "abort") {
    aborted_with_ = 1;
  }
}

}  // namespace verbatim::harness
