// SPDX-License-Identifier: BSD-2-Clause
#include "tests/tools/tool_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

extern char** environ;

namespace verbatim::tools {
namespace {

std::vector<std::string> merged_environment(const Environment& additions) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (additions.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : additions) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

/// A pipe whose read end is ours and whose write end becomes `target` in the child.
int add_pipe(posix_spawn_file_actions_t* actions, int target, int* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  posix_spawn_file_actions_adddup2(actions, ends[1], target);
  *write_end = ends[1];
  return ends[0];
}

/// As add_pipe, of a terminal.
int add_terminal(posix_spawn_file_actions_t* actions, int target, int* far_end) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[128];
  if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0 ||
      ptsname_r(ours, name, sizeof(name)) != 0)
    throw std::runtime_error("no terminal");
  *far_end = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*far_end < 0) throw std::runtime_error("no terminal");
  posix_spawn_file_actions_adddup2(actions, *far_end, target);
  return ours;
}

}  // namespace

ToolProcess::ToolProcess(const Program& program, const std::vector<std::string>& arguments,
                         Errors errors) {
  std::vector<std::string> words{program.name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = merged_environment(program.environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int out_write, err_write;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  out_ = add_pipe(&actions, 1, &out_write);
  err_ = errors == Errors::kPipe ? add_pipe(&actions, 2, &err_write)
                                 : add_terminal(&actions, 2, &err_write);
  const int error = posix_spawn(&pid_, program.file.c_str(), &actions, nullptr,
                                pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out_write);
  close(err_write);
  if (error != 0) {
    pid_ = -1;
    throw std::runtime_error("cannot run " + program.file);
  }
}

ToolProcess::~ToolProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void ToolProcess::signal(int number) const { kill(pid_, number); }

bool ToolProcess::read_some(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if ((out_ < 0 && err_ < 0) || left <= 0) return false;
  if (poll(fds, 2, static_cast<int>(left)) <= 0) return errno == EINTR;
  const auto take = [](const pollfd& ready, int* fd, std::string* into) {
    if (ready.revents == 0) return;
    char chunk[4096];
    const ssize_t got = read(*fd, chunk, sizeof(chunk));
    if (got > 0) {
      into->append(chunk, static_cast<std::size_t>(got));
    } else {
      close(*fd);
      *fd = -1;
    }
  };
  take(fds[0], &out_, &ending_.out);
  take(fds[1], &err_, &ending_.err);
  return true;
}

bool ToolProcess::wait_for(const std::string& in, const std::string& text,
                           std::chrono::milliseconds wait) {
  const auto end = Clock::now() + wait;
  while (in.find(text) == std::string::npos) {
    if (!read_some(end)) return false;
  }
  return true;
}

bool ToolProcess::wait_for_error(const std::string& text, std::chrono::milliseconds wait) {
  return wait_for(ending_.err, text, wait);
}

bool ToolProcess::wait_for_output(const std::string& text, std::chrono::milliseconds wait) {
  return wait_for(ending_.out, text, wait);
}

bool ToolProcess::running_after(std::chrono::milliseconds wait) {
  const auto end = Clock::now() + wait;
  while (read_some(end)) {
  }
  return out_ >= 0 || err_ >= 0;
}

Ending ToolProcess::finish(std::chrono::milliseconds wait) {
  const auto end = Clock::now() + wait;
  while (read_some(end)) {
  }
  // Both pipes are closed, or time is up: in the first case its end is a matter of microseconds.
  ending_.in_time = out_ < 0 && err_ < 0;
  if (!ending_.in_time) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) ending_.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
  return ending_;
}

long own_lines(const std::string& text) {
  long lines = 0;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    if (!text.substr(at, end - at).starts_with("verbatim: QP 0x")) ++lines;
  return lines;
}

Ending run(const Program& program, const std::vector<std::string>& arguments,
           std::chrono::milliseconds wait) {
  ToolProcess process(program, arguments);
  return process.finish(wait);
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string name = std::to_string(pid);
  std::ifstream file("/proc/" + name + "/task/" + name + "/children");
  std::vector<pid_t> all;
  for (pid_t child = 0; file >> child;) all.push_back(child);
  return all;
}

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::optional<int> listening_port(ToolProcess& server) {
  static const std::string kBefore = "listening on port ";
  if (!server.wait_for_error(kBefore) || !server.wait_for_error("\n")) return {};
  return std::atoi(server.errors().c_str() + server.errors().find(kBefore) + kBefore.size());
}

}  // namespace verbatim::tools
