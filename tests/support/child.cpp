// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/child.hpp"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) merged.push_back(name + "=" + value);
  }
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Child::Child(const std::string& role, const std::map<std::string, std::string>& environment)
    : Child(role, environment, Control::make_pair()) {}

Child::Child(const std::string& role, const std::map<std::string, std::string>& environment,
             std::pair<Control, Control> ends)
    : control_(std::move(ends.first)) {
  // By its name: valgrind, which starts us, is what /proc/self/exe would start.
  std::vector<std::string> arguments{std::filesystem::read_symlink("/proc/self/exe"),
                                     "--vbt-role=" + role};
  std::vector<std::string> variables = merged_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends.second.fd(), kControlFd);
  // What whoever started the tests left open is not the child's, nor counted against its limits.
  posix_spawn_file_actions_addclosefrom_np(&actions, kControlFd + 1);
  const int error = posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("posix_spawn: errno " + std::to_string(error));
}

Child::~Child() {
  if (!ended_.in_time) kill_and_collect();
}

Ended Child::wait(std::int32_t wait_ms) {
  if (ended_.in_time) return ended_;
  int status = 0;
  pid_t collected = 0;
  const bool in_time = wait_until(
      [&] {
        collected = waitpid(pid_, &status, WNOHANG);
        return collected != 0;
      },
      wait_ms);
  if (in_time && collected == pid_) {
    ended_ = {true, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
              WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }
  return ended_;
}

void Child::signal(int number) {
  if (!ended_.in_time) kill(pid_, number);
}

void Child::kill_and_collect() {
  signal(SIGKILL);
  wait();
}

bool Child::is_stopped() const {
  siginfo_t state{};
  return waitid(P_PID, static_cast<id_t>(pid_), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == pid_;
}

bool Child::is_paused() const {
#ifdef SYS_pause
  const long in_pause = SYS_pause;
#else
  const long in_pause = SYS_ppoll;  // what pause() is where the kernel has none
#endif
  std::ifstream file("/proc/" + std::to_string(pid_) + "/syscall");
  long number = -1;  // stays when it reads "running"
  file >> number;
  return file && number == in_pause;
}

std::string Child::whereabouts() const {
  const auto word_of = [](const std::filesystem::path& file, int skipped) {
    std::ifstream text(file);
    std::string word;
    for (int i = 0; i <= skipped; ++i) text >> word;
    return word;
  };
  std::ostringstream all;
  all << "process " << pid_;
  // Threads may end meanwhile.
  std::error_code gone;
  std::filesystem::directory_iterator task("/proc/" + std::to_string(pid_) + "/task", gone);
  for (; task != std::filesystem::directory_iterator(); task.increment(gone)) {
    const std::filesystem::path& thread = task->path();
    // Of stat: the name, which has no blanks here, and the state.
    all << ' ' << word_of(thread / "stat", 1) << ' ' << word_of(thread / "stat", 2) << ", call "
        << word_of(thread / "syscall", 0) << ", in " << word_of(thread / "wchan", 0) << ';';
  }
  return all.str();
}

}  // namespace verbatim::harness
