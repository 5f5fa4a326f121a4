// SPDX-License-Identifier: BSD-2-Clause
#include "tests/mpi/ranks.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tests/mpi/pmi_server.hpp"

namespace verbatim::harness {
namespace {

using Clock = std::chrono::steady_clock;

struct Rank {
  pid_t pid = -1;
  int pmi = -1;
  int output = -1;
  bool is_running = false;
};

class Launcher {
 public:
  Launcher(int count, const RanksOptions& options)
      : options_(options),
        server_(count, options.answers),
        ranks_(static_cast<std::size_t>(count)) {
    end_.ranks.resize(ranks_.size());
    if (options.protocol == RanksOptions::Protocol::kPort) listen_at_port();
  }
  ~Launcher() {
    for (Rank& rank : ranks_) {
      if (rank.is_running) {
        ::kill(rank.pid, SIGKILL);
        ::waitpid(rank.pid, nullptr, 0);
      }
      close_of(rank.pmi);
      close_of(rank.output);
    }
    for (int fd : strangers_) ::close(fd);
    close_of(listener_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  RanksEnd run(const std::string& program, const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) start(i, program, arguments);
    while (is_any_running() && elapsed_ms() < options_.time_limit_ms) step();
    end_.is_in_time = !is_any_running();
    kill_all();
    while (is_any_running()) step();
    for (Rank& rank : ranks_)
      while (rank.output >= 0) read_output(rank);
    end_.aborted_with = server_.aborted_with();
    if (!server_.nonsense().empty()) end_.output += "no PMI: " + server_.nonsense() + "\n";
    return end_;
  }

 private:
  static void close_of(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

  int elapsed_ms() const {
    return static_cast<int>(
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_).count());
  }

  void listen_at_port() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(listener_, address, length) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, address, &length) != 0)
      std::abort();
    port_ = ::ntohs(at.sin_port);
  }

  void start(std::size_t i, const std::string& program, const std::vector<std::string>& arguments) {
    int pmi[2];
    int output[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0 ||
        ::pipe2(output, O_CLOEXEC) != 0)
      std::abort();
    const pid_t launcher = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != launcher) ::_exit(127);
      ::dup2(output[1], STDOUT_FILENO);
      ::dup2(output[1], STDERR_FILENO);
      ::fcntl(pmi[1], F_SETFD, 0);
      become(i, program, arguments, pmi[1]);
    }
    ::close(pmi[1]);
    ::close(output[1]);
    ::fcntl(output[0], F_SETFL, O_NONBLOCK);
    ranks_[i] = {pid, pmi[0], output[0], true};
  }

  [[noreturn]] void become(std::size_t i, const std::string& program,
                           const std::vector<std::string>& arguments, int pmi) {
    const std::string number = std::to_string(i);
    if (options_.protocol == RanksOptions::Protocol::kPort) {
      ::setenv("PMI_PORT", ("127.0.0.1:" + std::to_string(port_)).c_str(), 1);
      ::setenv("PMI_ID", number.c_str(), 1);
    } else {
      ::setenv("PMI_FD", std::to_string(pmi).c_str(), 1);
      ::setenv("PMI_RANK", number.c_str(), 1);
      ::setenv("PMI_SIZE", std::to_string(ranks_.size()).c_str(), 1);
    }
    if (options_.protocol == RanksOptions::Protocol::kPmi2) {
      ::setenv("PMI_JOBID", "17.0", 1);
      ::setenv("SLURM_PROCID", number.c_str(), 1);
    }
    // Tests run beside others: nobody has a processor to himself.
    ::setenv("VERBATIM_WAIT", "share", 0);
    for (const auto& [name, value] : options_.environment) {
      if (value.empty())
        ::unsetenv(name.c_str());
      else
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> argv;
    argv.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }

  bool is_any_running() const {
    for (const Rank& rank : ranks_)
      if (rank.is_running) return true;
    return false;
  }

  void kill_all() {
    for (const Rank& rank : ranks_)
      if (rank.is_running) ::kill(rank.pid, SIGKILL);
  }

  void read_output(Rank& rank) {
    char bytes[4096];
    const ssize_t got = ::read(rank.output, bytes, sizeof bytes);
    if (got > 0)
      end_.output.append(bytes, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EAGAIN || !rank.is_running)
      close_of(rank.output);
  }

  void read_pmi(std::size_t i) {
    char bytes[4096];
    const ssize_t got = ::recv(ranks_[i].pmi, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN) close_of(ranks_[i].pmi);
      return;
    }
    server_.hear(static_cast<int>(i), std::string(bytes, static_cast<std::size_t>(got)));
    for (std::size_t each = 0; each < ranks_.size(); ++each) {
      const std::string answer = server_.take_answer(static_cast<int>(each));
      if (!answer.empty() && ranks_[each].pmi >= 0)
        (void)::send(ranks_[each].pmi, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    if (server_.aborted_with() >= 0) kill_all();
  }

  /// Who comes by the port says in its first line which rank it is.
  void take_stranger(std::size_t at) {
    char line[256];
    const ssize_t got = ::recv(strangers_[at], line, sizeof line - 1, MSG_PEEK);
    int id = -1;
    if (got > 0) {
      line[got] = '\0';
      if (std::sscanf(line, "cmd=initack pmiid=%d", &id) != 1) id = -1;
    }
    const int fd = strangers_[at];
    strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(at));
    if (id < 0 || static_cast<std::size_t>(id) >= ranks_.size()) {
      ::close(fd);
      return;
    }
    close_of(ranks_[static_cast<std::size_t>(id)].pmi);
    ranks_[static_cast<std::size_t>(id)].pmi = fd;
  }

  void collect() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      int status = 0;
      if (!rank.is_running || ::waitpid(rank.pid, &status, WNOHANG) != rank.pid) continue;
      rank.is_running = false;
      RankEnd& end = end_.ranks[i];
      end.after_ms = elapsed_ms();
      if (WIFEXITED(status))
        end.exit_status = WEXITSTATUS(status);
      else
        end.signal = WTERMSIG(status);
      if (options_.end_all_with_one && end.exit_status != 0) kill_all();
    }
  }

  void step() {
    std::vector<pollfd> asked;
    for (const Rank& rank : ranks_) {
      asked.push_back({rank.pmi, POLLIN, 0});
      asked.push_back({rank.output, POLLIN, 0});
    }
    asked.push_back({listener_, POLLIN, 0});
    for (int fd : strangers_) asked.push_back({fd, POLLIN, 0});
    constexpr int kMilliseconds = 5;  // ends are looked for as often
    if (::poll(asked.data(), asked.size(), kMilliseconds) > 0) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (asked[2 * i].revents != 0 && ranks_[i].pmi >= 0) read_pmi(i);
        if (asked[2 * i + 1].revents != 0 && ranks_[i].output >= 0) read_output(ranks_[i]);
      }
      for (std::size_t at = strangers_.size(); at-- > 0;)
        if (asked[2 * ranks_.size() + 1 + at].revents != 0) take_stranger(at);
      if (asked[2 * ranks_.size()].revents != 0)
        strangers_.push_back(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    }
    collect();
  }

  const RanksOptions& options_;
  PmiServer server_;
  std::vector<Rank> ranks_;
  RanksEnd end_;
  int listener_ = -1;
  int port_ = 0;
  std::vector<int> strangers_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace

bool RanksEnd::is_success() const {
  if (!is_in_time) return false;
  for (const RankEnd& rank : ranks)
    if (rank.exit_status != 0) return false;
  return true;
}

std::string RanksEnd::told() const {
  std::string text = is_in_time ? "" : "not in time; ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += "rank " + std::to_string(i);
    text += ranks[i].signal != 0 ? " signal " + std::to_string(ranks[i].signal)
                                 : " exit " + std::to_string(ranks[i].exit_status);
    text += " after " + std::to_string(ranks[i].after_ms) + " ms; ";
  }
  return text + "output:\n" + output;
}

RanksEnd run_ranks(int count, const std::string& program, const std::vector<std::string>& arguments,
                   const RanksOptions& options) {
  Launcher launcher(count, options);
  return launcher.run(program, arguments);
}

}  // namespace verbatim::harness
