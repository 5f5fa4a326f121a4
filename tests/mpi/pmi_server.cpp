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
      answer(client, rank, request);
    } else {
      const std::size_t end = client.held.find('\n');
      if (end == std::string::npos) return;
      const std::string request = client.held.substr(0, end);
      client.held.erase(0, end + 1);
      answer(client, rank, request);
    }
  }
}

void PmiServer::answer(Client& client, int rank, const std::string& request) {
  const std::string command = value_of(request, "cmd", client.is_pmi2 ? ';' : ' ');
  if (!is_deaf_to_.empty() && command == is_deaf_to_) return;
  if (client.is_pmi2)
    answer_pmi2(client, rank, command, request);
  else
    answer_pmi1(client, command, request);
}

void PmiServer::enter_barrier(Client& client) {
  client.is_waiting = true;
  if (++waiting_ < ranks_) return;
  waiting_ = 0;
  for (Client& each : clients_) {
    each.is_waiting = false;
    each.to_send += each.is_pmi2 ? record("cmd=kvs-fence-response;rc=0;") : "cmd=barrier_out\n";
  }
}

void PmiServer::answer_pmi1(Client& client, const std::string& command,
                            const std::string& request) {
  std::string& out = client.to_send;
  if (command == "initack") {
    out += "cmd=initack rc=0\ncmd=set size=" + std::to_string(ranks_) +
           "\ncmd=set rank=" + value_of(request, "pmiid", ' ') + "\ncmd=set debug=0\n";
  } else if (command == "init") {
    client.is_pmi2 = value_of(request, "pmi_version", ' ') == "2";
    out += client.is_pmi2 ? "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n"
                          : "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  } else if (command == "get_maxes") {
    out += "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
  } else if (command == "get_appnum") {
    out += "cmd=appnum appnum=0\n";
  } else if (command == "get_my_kvsname") {
    out += "cmd=my_kvsname kvsname=kvs_test_0\n";
  } else if (command == "get_universe_size") {
    out += "cmd=universe_size size=" + std::to_string(ranks_) + " rc=0\n";
  } else if (command == "put") {
    pairs_[value_of(request, "key", ' ')] = value_of(request, "value", ' ');
    out += "cmd=put_result rc=0 msg=success\n";
  } else if (command == "get") {
    const auto found = pairs_.find(value_of(request, "key", ' '));
    out += found == pairs_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
                                 : "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
  } else if (command == "barrier_in") {
    enter_barrier(client);
  } else if (command == "finalize") {
    out += "cmd=finalize_ack\n";
  } else if (command == "abort") {
    aborted_with_ = std::atoi(value_of(request, "exitcode", ' ').c_str());
  }
}

void PmiServer::answer_pmi2(Client& client, int rank, const std::string& command,
                            const std::string& request) {
  std::string& out = client.to_send;
  if (command == "fullinit") {
    out += record(
        "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
        ";size=" + std::to_string(ranks_) + ";appnum=-1;debugged=FALSE;pmiverbose=FALSE;");
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
    enter_barrier(client);
  } else if (command == "finalize") {
    out += record("cmd=finalize-response;rc=0;");
  } else if (command == "abort") {
    aborted_with_ = 1;
  }
}

}  // namespace verbatim::harness
