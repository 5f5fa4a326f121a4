// SPDX-License-Identifier: BSD-2-Clause
// What the members of a test's teams have in common: who they are, an exchange by files in a
// directory, and checks that end the process with a line.
#pragma once

#include <verbatim/coll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::harness {

/// By the environment and the arguments: PMI_RANK, PMI_SIZE, and argv[1] is the directory.
struct Member {
  int rank = 0;
  int size = 1;
  std::string directory;
  std::vector<std::string> arguments;  ///< behind the directory
};

Member member_of(int argc, char** argv);

/// Prints "member R: ..." and ends the process with 1.
[[noreturn, gnu::format(printf, 1, 2)]] void give_up(const char* format, ...);

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition))                                                                        \
      ::verbatim::harness::give_up("%s:%d: not so: %s (%s)", __FILE__, __LINE__, #condition, \
                                   vbt_coll_why());                                          \
  } while (false)

/// A file that another member waits for.
void say(const Member& member, const std::string& word);
[[nodiscard]] bool is_said(const Member& member, const std::string& word);
/// Bounded; ends the process when it is not said in time.
void await(const Member& member, const std::string& word);

/// An exchange among some of the members: the files of one name no other has.
class FileExchange {
 public:
  FileExchange(const Member& member, std::string name, int rank, int size)
      : member_(&member), name_(std::move(name)), rank_(rank), size_(size) {}

  static int call(void* self, const void* mine, void* all, std::size_t bytes);

 private:
  const Member* member_;
  std::string name_;
  int rank_;
  int size_;
  int rounds_ = 0;
};

/// A team of these members of the world, in this order. REQUIRES: this one is among them.
struct TeamOptions {
  std::uint32_t timeout_ms = 0;
  std::uint32_t flags = 0;
  void (*idle)(void*) = nullptr;
};
int try_team(const Member& member, const std::string& name, const std::vector<int>& members,
             vbt_coll_team*& team, const TeamOptions& options = {});
vbt_coll_team* make_team(const Member& member, const std::string& name,
                         const std::vector<int>& members, const TeamOptions& options = {});
std::vector<int> all_of(const Member& member);

/// How many times the idle functions of teams were called with this process's member.
inline int idle_calls = 0;

}  // namespace verbatim::harness
