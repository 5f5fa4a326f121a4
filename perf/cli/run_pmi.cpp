// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_pmi.hpp"

#include <charconv>
#include <utility>

namespace verbatim::cli {
namespace {

/// The value of `name=` in a line of words, empty if there is none.
std::string_view value_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const auto space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
    line = space == std::string_view::npos ? "" : line.substr(space + 1);
  }
  return {};
}

PmiEvent nonsense(std::string_view why, std::string_view line) {
  PmiEvent event;
  event.kind = PmiEvent::Kind::kNonsense;
  event.text = std::string(why) + " ('" + printable_text(line) + "')";
  return event;
}

PmiEvent abort_event(std::string_view line) {
  PmiEvent event;
  event.kind = PmiEvent::Kind::kAbort;
  const std::string_view code = value_of(line, "exitcode");
  if (std::from_chars(code.data(), code.data() + code.size(), event.code).ec != std::errc())
    event.code = 1;
  // The text goes on to the end of the line.
  for (const std::string_view name : {" message=", " error_msg="})
    if (const auto at = line.find(name); at != std::string_view::npos)
      event.text = printable_text(line.substr(at + name.size()));
  return event;
}

}  // namespace

std::string printable_text(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string out(text.substr(0, kLongest));
  for (char& each : out)
    if (each < ' ' || each > '~') each = '?';
  if (text.size() > kLongest) out += "...";
  return out;
}

PmiServer::PmiServer(int size, std::string job)
    : ranks_(static_cast<std::size_t>(size)), job_{std::move(job)} {}

PmiEvent PmiServer::take(int number, std::string_view bytes) {
  Rank& rank = of(number);
  rank.line += bytes;
  for (;;) {
    const auto end = rank.line.find('\n');
    if (end == std::string::npos) break;
    const std::string line = rank.line.substr(0, end);
    rank.line.erase(0, end + 1);
    if (line.size() > kMostLine) return nonsense("a line is too long", line);
    PmiEvent event = take_line(rank, line);
    if (event.kind != PmiEvent::Kind::kNone) return event;
    if (rank.answers.size() > kMostUnread) return nonsense("it does not read its answers", line);
  }
  if (rank.line.size() > kMostLine) return nonsense("a line is too long", rank.line);
  return {};
}

PmiEvent PmiServer::take_line(Rank& rank, std::string_view line) {
  if (rank.is_spawning) {
    if (line != "endcmd") return {};
    rank.is_spawning = false;
    rank.answers += "cmd=spawn_result rc=-1 msg=this_launcher_starts_no_more_ranks\n";
    return {};
  }
  const std::string_view command = value_of(line, "cmd");
  if (command == "init") return begin(rank, line);
  if (command == "abort") return abort_event(line);
  if (!rank.has_begun) return nonsense("it began without cmd=init", line);
  if (rank.has_ended) return nonsense("it went on after cmd=finalize", line);
  if (rank.is_waiting) return nonsense("it spoke while it waits in a barrier", line);
  if (value_of(line, "mcmd") == "spawn") {
    rank.is_spawning = true;
  } else if (command == "get_maxes") {
    rank.answers += "cmd=maxes rc=0 kvsname_max=256 keylen_max=" + std::to_string(kMostKey) +
                    " vallen_max=" + std::to_string(kMostValue) + "\n";
  } else if (command == "get_appnum") {
    rank.answers += "cmd=appnum rc=0 appnum=0\n";
  } else if (command == "get_universe_size") {
    rank.answers += "cmd=universe_size rc=0 size=" + std::to_string(ranks_.size()) + "\n";
  } else if (command == "get_my_kvsname") {
    rank.answers += "cmd=my_kvsname rc=0 kvsname=" + job_ + "\n";
  } else if (command == "put") {
    return put(rank, line);
  } else if (command == "get") {
    get(rank, line);
  } else if (command == "barrier_in") {
    return enter_barrier(rank);
  } else if (command == "finalize") {
    return end(rank);
  } else if (command == "publish_name" || command == "unpublish_name" || command == "lookup_name") {
    const std::string_view verb = command.substr(0, command.find('_'));
    rank.answers += "cmd=" + std::string(verb) + "_result rc=-1 msg=not_supported\n";
  } else {
    return nonsense("there is no such request", line);
  }
  return {};
}

PmiEvent PmiServer::begin(Rank& rank, std::string_view line) {
  if (rank.has_begun) return nonsense("it began twice", line);
  if (value_of(line, "pmi_version") != "1") {
    rank.answers += "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n";
    return {};
  }
  rank.has_begun = true;
  rank.answers += "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
  return {};
}

PmiEvent PmiServer::put(Rank& rank, std::string_view line) {
  const std::string_view key = value_of(line, "key");
  const std::string_view value = value_of(line, "value");
  if (value_of(line, "kvsname") != job_) return nonsense("there is no such space of keys", line);
  if (key.empty() || key.size() > kMostKey) return nonsense("a key has no or too many bytes", line);
  if (value.size() > kMostValue) return nonsense("a value has too many bytes", line);
  stored_bytes_ += key.size() + value.size() + 64;
  if (stored_bytes_ > kMostStored)
    return nonsense("more is published than there is room for", line);
  const bool is_new = stored_.emplace(key, value).second;
  rank.answers += is_new ? "cmd=put_result rc=0 msg=success\n"
                         : "cmd=put_result rc=-1 msg=the_key_was_published_before\n";
  return {};
}

void PmiServer::get(Rank& rank, std::string_view line) {
  const auto found = stored_.find(std::string(value_of(line, "key")));
  if (found == stored_.end() || value_of(line, "kvsname") != job_) {
    rank.answers += "cmd=get_result rc=-1 msg=nobody_published_this_key value=unknown\n";
    return;
  }
  rank.answers += "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
}

PmiEvent PmiServer::enter_barrier(Rank& rank) {
  if (ended_ != 0)
    return nonsense("it waits for ranks that have ended, or never began", "cmd=barrier_in");
  rank.is_waiting = true;
  if (++waiting_ < ranks_.size()) return {};
  waiting_ = 0;
  for (Rank& each : ranks_) {
    each.is_waiting = false;
    each.answers += "cmd=barrier_out rc=0\n";
  }
  return {};
}

PmiEvent PmiServer::end(Rank& rank) {
  if (waiting_ != 0)
    return nonsense("it ends while others wait for it in a barrier", "cmd=finalize");
  rank.has_ended = true;
  ++ended_;
  rank.answers += "cmd=finalize_ack rc=0\n";
  return {};
}

bool PmiServer::leave(int number) {
  if (of(number).has_begun) return true;
  ++ended_;
  return waiting_ == 0;
}

}  // namespace verbatim::cli
