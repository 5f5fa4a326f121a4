// SPDX-License-Identifier: BSD-2-Clause
// `verbatim exec`: runs a program that is linked with libibverbs as it is, on the devices of
// Verbatim; or, with --pmpi, one that is linked with another MPI. Main thread.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotRun = 126;  // as a shell says it
constexpr int kNotFound = 127;

struct Variable {
  std::string name;
  std::string value;
};

void exec_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s [--] <program> [arguments]\n"
      "                        run a program that is linked with libibverbs, as it is, on the\n"
      "                        devices of Verbatim: it and all that it starts\n"
      "  %s --pmpi [--] <mpiexec> [arguments]\n"
      "                        run a job of Open MPI or MPICH, as it is: its collectives within\n"
      "                        the host are Verbatim's, all else stays that MPI's; with\n"
      "                        VERBATIM_LOG=info, MPI_Finalize tells what was taken\n"
      "  %s [--pmpi] --show    print what that sets, as lines for a shell\n"
      "\n"
      "Options:\n"
      "  --pmpi                for programs of another MPI\n"
      "  --show                run nothing\n"
      "  -h, --help            print a help text and exit\n"
      "\n"
      "The exit status is the program's; 127: there is none, 126: it cannot be run. Programs that\n"
      "are set-user-id, or linked statically, keep the library that they have.\n",
      name, name, name);
}

/// The folder with all of these files, from where this program lies: installed, or as it was built.
fs::path find_folder(const char* program, const char* from_bin, const char* from_build,
                     std::initializer_list<const char*> files, const char* fix) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) fail("%s: cannot read /proc/self/exe: %s", program, error.message().c_str());
  const fs::path bin = self.parent_path();
  const fs::path installed = (bin / from_bin).lexically_normal();
  for (const fs::path& folder : {installed, (bin / from_build).lexically_normal()}) {
    if (std::all_of(files.begin(), files.end(),
                    [&](const char* file) { return fs::exists(folder / file, error); }))
      return folder;
  }
  std::string names;
  for (const char* const file : files) names += (names.empty() ? "" : " and ") + std::string(file);
  fail("%s: no %s in %s; fix: %s", program, names.c_str(), installed.c_str(), fix);
}

std::string set_before(const std::string& value, const char* name) {
  const char* const old = std::getenv(name);
  if (old == nullptr || *old == '\0') return value;
  const std::string_view kept = old;
  if (kept == value || kept.starts_with(value + ":")) return std::string(kept);
  return value + ":" + old;
}

/// The loader knows no way to write these.
void check_name(const char* program, const std::string& folder) {
  if (folder.find_first_of(" :") != std::string::npos)
    fail("%s: LD_PRELOAD takes no folder with a space or a colon in its name: %s", program,
         folder.c_str());
}

std::vector<Variable> verbs_variables(const char* program) {
  const std::string folder =
      find_folder(program, VERBATIM_DROPIN_FROM_BIN, "../../dropin",
                  {"libibverbs.so.1", "libverbatim_gate.so"}, "install the component 'dropin'");
  check_name(program, folder);
  std::vector<Variable> set = {
      {"LD_LIBRARY_PATH", set_before(folder, "LD_LIBRARY_PATH")},
      // A program with DT_RPATH looks there before it looks in LD_LIBRARY_PATH.
      {"LD_PRELOAD",
       set_before(folder + "/libibverbs.so.1:" + folder + "/libverbatim_gate.so", "LD_PRELOAD")}};
  // Open MPI would say for each rank that it has no tuning file for this vendor.
  constexpr const char* kNoParameters = "OMPI_MCA_btl_openib_warn_no_device_params_found";
  if (std::getenv(kNoParameters) == nullptr) set.push_back({kNoParameters, "0"});
  return set;
}

std::vector<Variable> pmpi_variables(const char* program) {
  constexpr const char* kFile = "libverbatim_pmpi.so";
  const fs::path folder = find_folder(program, VERBATIM_LIB_FROM_BIN, "../..", {kFile},
                                      "install what was built with VERBATIM_PMPI=ON");
  check_name(program, folder);
  return {{"LD_PRELOAD", set_before(folder / kFile, "LD_PRELOAD")}};
}

/// As one word of a shell.
std::string quoted(const std::string& value) {
  std::string word = "'";
  for (const char letter : value) {
    if (letter == '\'')
      word += "'\\''";
    else
      word += letter;
  }
  return word + "'";
}

/// Where execvp will find it; empty: nowhere.
std::string file_of(const char* command) {
  if (std::strchr(command, '/') != nullptr) return command;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  for (;;) {
    const std::size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    const std::string file = (folder.empty() ? "." : folder) + "/" + command;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (colon == std::string_view::npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

void warn_of_privileges(const char* program, const char* command) {
  struct stat about {};
  const std::string file = file_of(command);
  if (file.empty() || ::stat(file.c_str(), &about) != 0) return;
  const bool changes = ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
                       ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid());
  if (changes)
    std::fprintf(stderr,
                 "%s: %s changes the user or group that it runs as: the loader does not look at "
                 "LD_LIBRARY_PATH and LD_PRELOAD for it, and it uses the system's libibverbs\n",
                 program, file.c_str());
}

int exec_command(const char* program, const std::vector<Variable>& variables, char** command) {
  for (const Variable& variable : variables) {
    if (::setenv(variable.name.c_str(), variable.value.c_str(), 1) != 0)
      fail("%s: cannot set %s: %s", program, variable.name.c_str(), std::strerror(errno));
  }
  warn_of_privileges(program, command[0]);
  ::execvp(command[0], command);
  const int error = errno;
  std::fprintf(stderr, "%s: cannot run '%s': %s\n", program, command[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotRun;
}

}  // namespace

int exec(Calling, int argc, char** argv) {
  const char* const program = argv[0];
  bool shows = false;
  bool is_for_mpi = false;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string_view word = argv[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word == "-h" || word == "--help") {
      exec_usage(program);
      return 0;
    }
    if (word == "--show") {
      shows = true;
    } else if (word == "--pmpi") {
      is_for_mpi = true;
    } else {
      std::fprintf(stderr, "%s: no option '%s' (see --help)\n", program, argv[at]);
      return 1;
    }
  }
  try {
    if (shows == (at < argc)) {
      std::fprintf(stderr, "%s: %s (see --help)\n", program,
                   shows ? "--show takes no program" : "which program?");
      return 1;
    }
    const std::vector<Variable> variables =
        is_for_mpi ? pmpi_variables(program) : verbs_variables(program);
    if (!shows) return exec_command(program, variables, argv + at);
    for (const Variable& variable : variables)
      std::printf("export %s=%s\n", variable.name.c_str(), quoted(variable.value).c_str());
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
