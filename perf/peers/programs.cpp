// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/programs.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "perf/support/arguments.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr int kTimeoutMs = 30'000;
constexpr const char* kBecome = "--become";

// A port that was free a moment ago; the server binds it anew.
std::uint16_t free_port() {
  const Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe.get(), generic, length) != 0 || getsockname(probe.get(), generic, &length) != 0) {
    throw std::system_error(errno, std::generic_category(), "find a free TCP port");
  }
  return ntohs(address.sin_port);
}

// Both programs buffer their output, so "waiting" cannot be read from it; a probing connection
// would be taken for the client.
bool is_listening(std::uint16_t port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      unsigned found = 0;
      unsigned state = 0;
      // "sl: local_address:port remote_address:port state"
      if (std::sscanf(line.c_str(), " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &found,
                      &state) == 2 &&
          found == port && state == 0x0A) {
        return true;
      }
    }
  }
  return false;
}

void await_listening(std::uint16_t port) {
  const std::uint64_t deadline = now_ns() + std::uint64_t{kTimeoutMs} * 1'000'000;
  while (!is_listening(port)) {
    check_interrupt();
    if (now_ns() > deadline) throw std::runtime_error("the server does not listen");
    usleep(1000);
  }
}

std::vector<std::string> pinned(const std::vector<std::string>& argv, int cpu, std::uint16_t port) {
  std::vector<std::string> all = {own_path(), kBecome, std::to_string(cpu),
                                  std::to_string(getpid())};
  for (const std::string& word : argv)
    all.push_back(word == "%PORT%" ? std::to_string(port) : word);
  return all;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    wait_readable(std::array{fd}, kTimeoutMs);
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

ProgramsRun run_programs(const Programs& programs, const CorePair& cores) {
  const std::uint16_t port = free_port();
  SpawnOptions options;
  options.environment = programs.environment;
  auto [server_output, server_end] = pipe_pair();
  options.stdout_fd = options.stderr_fd = server_end.get();
  Child server(pinned(programs.server, cores.far, port), options);
  server_end.reset();
  await_listening(port);

  auto [client_output, client_end] = pipe_pair();
  options.stdout_fd = options.stderr_fd = client_end.get();
  Child client(pinned(programs.client, cores.near, port), options);
  client_end.reset();
  std::string text;
  try {
    text = read_all(client_output.get());
    double client_waited = 0;
    double server_waited = 0;
    const int status = client.wait(&client_waited);
    // The server prints at its end; what it says is only wanted when something is wrong.
    const std::string server_text = read_all(server_output.get());
    if (status == 0 && server.wait(&server_waited) == 0) {
      return {text, client_waited + server_waited};
    }
    text += server_text;
  } catch (const TimedOut&) {
    text += "(no end within " + std::to_string(kTimeoutMs / 1000) + " s)";
  }
  constexpr std::size_t kEnough = 400;
  if (text.size() > kEnough) text.erase(0, text.size() - kEnough);
  throw std::runtime_error(programs.client.front() + " failed: " + text);
}

void become_program_if_asked(int argc, char** argv) {
  if (argc < 5 || std::string_view(argv[1]) != kBecome) return;
  try {
    end_with_parent(parse_count(argv[3], 1, 1 << 30).value());
    pin_to(parse_count(argv[2], 0, CPU_SETSIZE - 1).value());
    execvp(argv[4], argv + 4);
    std::perror(argv[4]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[4], failure.what());
  }
  _exit(127);
}

}  // namespace verbatim::perf
