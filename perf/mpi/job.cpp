// SPDX-License-Identifier: BSD-2-Clause
#include "perf/mpi/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr int kMpiTimeoutMs = 60'000;
constexpr int kFarewellMs = 5'000;

struct LibraryWords {
  const char* name;
  const char* program;   // beside ours
  const char* launcher;  // beside ours when it has a slash, else in PATH
  const char* run_time;  // Debian's packages
  const char* compiler;
};

const LibraryWords& words_of(MpiLibrary library) {
  static constexpr LibraryWords kWords[] = {
      {"Verbatim", "mpi_figures", "cli/verbatim", "", ""},
      {"Open MPI", "mpi_figures_openmpi", "mpirun.openmpi", "openmpi-bin", "libopenmpi-dev"},
      {"MPICH", "mpi_figures_mpich", "mpiexec.hydra", "mpich", "libmpich-dev"},
  };
  return kWords[static_cast<std::size_t>(library)];
}

bool is_there(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::vector<std::string> launcher_of(MpiLibrary library, const MpiJob& job) {
  const LibraryWords& words = words_of(library);
  const std::string ranks = std::to_string(job.ranks);
  switch (library) {
    case MpiLibrary::kVerbatim:
      return {path_beside_own(words.launcher), "run", "-n", ranks, "--bind-to",
              job.bound ? "core" : "none"};
    case MpiLibrary::kOpenMpi:
      if (job.bound)
        return {words.launcher, "--allow-run-as-root", "--bind-to", "core", "-n", ranks};
      return {words.launcher, "--allow-run-as-root", "--bind-to", "none", "--oversubscribe",
              "--mca",        "mpi_yield_when_idle", "1",         "-n",   ranks};
    case MpiLibrary::kMpich:
      return {words.launcher, "-bind-to", job.bound ? "core" : "none", "-n", ranks};
  }
  return {};
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// The launcher: asked to end its ranks before it is ended itself, since who is killed cannot do that.
class Launched {
 public:
  Launched(const std::vector<std::string>& argv, const std::string& folder,
           const std::vector<std::string>& environment) {
    auto [output, end] = pipe_pair();
    const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    SpawnOptions options;
    if (nothing.get() >= 0) options.fds = {{nothing.get(), STDIN_FILENO}};
    options.environment = {"VERBATIM_FABRIC=" + folder, "XDG_RUNTIME_DIR=" + folder,
                           "TMPDIR=" + folder};
    append(options.environment, environment);
    options.stdout_fd = options.stderr_fd = end.get();
    child_ = Child(argv, options);
    output_ = std::move(output);
  }
  ~Launched() {
    if (!child_.started()) return;
    kill(child_.pid(), SIGTERM);
    // The last rank's end closes the pipe.
    const std::uint64_t deadline = now_ns() + std::uint64_t{kFarewellMs} * 1'000'000;
    char rest[4096];
    pollfd watched = {output_.get(), POLLIN, 0};
    while (now_ns() < deadline && poll(&watched, 1, 100) >= 0) {
      if (watched.revents != 0 && read(output_.get(), rest, sizeof rest) <= 0) break;
    }
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  std::string read_all() const {
    std::string text;
    std::array<char, 4096> buffer;
    const std::uint64_t deadline = now_ns() + std::uint64_t{kMpiTimeoutMs} * 1'000'000;
    while (true) {
      if (now_ns() > deadline) throw TimedOut{};
      wait_readable(std::array{output_.get()}, kMpiTimeoutMs);
      const ssize_t got = read(output_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  int wait() { return child_.wait(); }

 private:
  Child child_;
  Fd output_;
};

}  // namespace

const char* name_of(MpiLibrary library) { return words_of(library).name; }

std::string missing_for(MpiLibrary library) {
  const LibraryWords& words = words_of(library);
  const bool is_built = is_there(path_beside_own(words.program));
  if (library == MpiLibrary::kVerbatim) {
    if (is_built && is_there(path_beside_own(words.launcher))) return {};
    return std::string(words.program) + " or " + words.launcher + " is not built";
  }
  if (!is_installed(words.launcher)) return std::string(words.run_time) + " is not installed";
  if (!is_built) return std::string(words.compiler) + " was not installed when this was built";
  return {};
}

std::vector<MpiFigure> parse_mpi_figures(const std::string& text) {
  std::istringstream lines(text);
  std::vector<MpiFigure> figures;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, unit, more;
    char slash = 0;
    MpiFigure figure;
    words >> mark >> figure.name >> figure.with >> figure.median >> figure.least >> unit >>
        figure.disturbed >> slash >> figure.blocks;
    if (!words || mark != "figure" || slash != '/' || figure.blocks < 1 || words >> more) continue;
    if (figure.median > 0) figures.push_back(figure);
  }
  return figures;
}

MpiRun run_mpi(MpiLibrary library, const MpiJob& job, const CorePair& cores,
               const std::string& folder) {
  std::vector<std::string> argv = job.before;
  append(argv, launcher_of(library, job));
  append(argv, job.options);
  argv.push_back(path_beside_own(words_of(library).program));
  append(argv, job.arguments);
  const RestoredAffinity restored;
  allow_only(cores);
  const std::uint64_t start = now_ns();
  Launched launched(argv, folder, job.environment);
  std::string text;
  try {
    text = launched.read_all();
    if (launched.wait() == 0)
      return {parse_mpi_figures(text), static_cast<double>(now_ns() - start) / 1e6};
  } catch (const TimedOut&) {
    text += "(no end within " + std::to_string(kMpiTimeoutMs / 1000) + " s)";
  }
  constexpr std::size_t kEnough = 400;
  if (text.size() > kEnough) text.erase(0, text.size() - kEnough);
  throw std::runtime_error(std::string(name_of(library)) + " failed: " + text);
}

}  // namespace verbatim::perf
