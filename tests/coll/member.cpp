// SPDX-License-Identifier: BSD-2-Clause
#include "tests/coll/member.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/support/deadline.hpp"

namespace verbatim::harness {
namespace {

int own_rank = -1;

/// Whole or not at all: it gets its name when it is written.
void write_file(const std::string& path, const void* bytes, std::size_t length) {
  const std::string unfinished = path + "." + std::to_string(::getpid());
  std::FILE* const file = std::fopen(unfinished.c_str(), "w");
  if (file == nullptr || std::fwrite(bytes, 1, length, file) != length || std::fclose(file) != 0 ||
      std::rename(unfinished.c_str(), path.c_str()) != 0)
    give_up("%s cannot be written", path.c_str());
}

bool read_file(const std::string& path, void* bytes, std::size_t length) {
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return false;
  const bool is_whole = std::fread(bytes, 1, length, file) == length;
  (void)std::fclose(file);
  return is_whole;
}

}  // namespace

Member member_of(int argc, char** argv) {
  Member member;
  if (const char* const rank = std::getenv("PMI_RANK")) member.rank = std::atoi(rank);
  if (const char* const size = std::getenv("PMI_SIZE")) member.size = std::atoi(size);
  own_rank = member.rank;
  if (argc < 2) give_up("no directory");
  member.directory = argv[1];
  member.arguments.assign(argv + 2, argv + argc);
  return member;
}

void give_up(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "member %d: ", own_rank);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::_Exit(1);
}

void say(const Member& member, const std::string& word) {
  write_file(member.directory + "/" + word, "", 0);
}
bool is_said(const Member& member, const std::string& word) {
  return ::access((member.directory + "/" + word).c_str(), F_OK) == 0;
}
void await(const Member& member, const std::string& word) {
  if (!wait_until([&] { return is_said(member, word); })) give_up("nobody said %s", word.c_str());
}

int FileExchange::call(void* self, const void* mine, void* all, std::size_t bytes) {
  auto& exchange = *static_cast<FileExchange*>(self);
  const std::string path = exchange.member_->directory + "/" + exchange.name_ + "." +
                           std::to_string(exchange.rounds_++) + ".";
  write_file(path + std::to_string(exchange.rank_), mine, bytes);
  for (int i = 0; i < exchange.size_; ++i) {
    unsigned char* const place = static_cast<unsigned char*>(all) + std::size_t(i) * bytes;
    if (!wait_until([&] { return read_file(path + std::to_string(i), place, bytes); }))
      return ETIMEDOUT;
  }
  return 0;
}

std::vector<int> all_of(const Member& member) {
  std::vector<int> all;
  for (int i = 0; i < member.size; ++i) all.push_back(i);
  return all;
}

int try_team(const Member& member, const std::string& name, const std::vector<int>& members,
             vbt_coll_team*& team, const TeamOptions& options) {
  vbt_coll_team_attr attr = {};
  attr.size = static_cast<std::uint32_t>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i] == member.rank) attr.rank = static_cast<std::uint32_t>(i);
  FileExchange exchange(member, name, static_cast<int>(attr.rank), static_cast<int>(attr.size));
  attr.exchange = FileExchange::call;
  attr.context = &exchange;
  attr.timeout_ms = options.timeout_ms;
  attr.flags = options.flags;
  attr.idle = options.idle;
  attr.name = name.c_str();
  return vbt_coll_create_team(&attr, sizeof attr, &team);
}

vbt_coll_team* make_team(const Member& member, const std::string& name,
                         const std::vector<int>& members, const TeamOptions& options) {
  vbt_coll_team* team = nullptr;
  if (const int error = try_team(member, name, members, team, options); error != 0)
    give_up("team %s: %d: %s", name.c_str(), error, vbt_coll_why());
  return team;
}

}  // namespace verbatim::harness
