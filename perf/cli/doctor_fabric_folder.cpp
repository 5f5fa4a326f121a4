// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: the folder where processes of shm find each other, really used: opened as the
// library opens it (providers/shm/fabric/fabric_folder.hpp), and a socket bound in it.
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/cli/doctor_findings.hpp"
#include "runtime/base/private_folder.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::cli {
namespace {

bool can_be_written(const std::string& folder) {
  struct stat status {};
  return folder[0] == '/' && stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

/// XDG_RUNTIME_DIR decides where processes meet, so those that see different ones do not.
void examine_runtime_dir(const HostFiles& files, Findings& findings) {
  const char* const set = std::getenv("XDG_RUNTIME_DIR");
  const std::string usual = "/run/user/" + std::to_string(geteuid());
  const std::string meet =
      "processes started with another XDG_RUNTIME_DIR (a login, systemd, sudo, "
      "cron, ssh) meet elsewhere and do not find each other";
  if (set != nullptr && set[0] != '\0') {
    if (can_be_written(set)) {
      findings.ok("XDG_RUNTIME_DIR", set);
    } else {
      findings.warn(
          "XDG_RUNTIME_DIR",
          std::string(set) + " is no folder that we can write to, so /tmp is used; " + meet,
          "make it ('mkdir -m 700'), unset it for all, or set VERBATIM_FABRIC to one "
          "absolute folder for all");
    }
  } else if (can_be_written(files.path(usual))) {
    findings.warn("XDG_RUNTIME_DIR",
                  "it is not set, so /tmp is used, although there is " + usual + "; " + meet,
                  "'export XDG_RUNTIME_DIR=" + usual +
                      "', or set VERBATIM_FABRIC to one absolute folder for all");
  } else {
    findings.ok("XDG_RUNTIME_DIR", "it is not set, so /tmp is used");
  }
}

/// The folder itself, or why there is none.
UniqueFd open_folder(std::string& path, FolderRefusal& refusal) {
  const char* fabric = std::getenv("VERBATIM_FABRIC");
  if (fabric == nullptr || fabric[0] == '\0') fabric = "default";
  UniqueFd folder;
  path = fabric;
  if (fabric[0] == '/') {
    (void)open_private_folder(AT_FDCWD, fabric, folder, refusal);
    return folder;
  }
  if (path.find('/') != std::string::npos || path[0] == '.' || path.size() > NAME_MAX) {
    refusal.error = EINVAL;
    std::snprintf(refusal.why, sizeof refusal.why, "neither a plain name nor an absolute path");
    path = "VERBATIM_FABRIC=" + path;
    return folder;
  }
  UniqueFd user;
  char of_user[PATH_MAX] = "";
  const int error = open_user_folder(user, of_user, sizeof of_user, refusal);
  path = of_user;
  if (error != 0) return folder;
  path.append("/").append(fabric);
  (void)open_private_folder(user.get(), fabric, folder, refusal);
  return folder;
}

/// Binds and listens under a name of our own. 0 or errno.
int try_socket(const UniqueFd& folder) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno;
  // Not a name that the library takes for a peer's.
  const std::string name = "doctor-" + std::to_string(getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The path of the folder may be longer than a socket's may be.
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder.get(),
                name.c_str());
  int error = 0;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 1) != 0)
    error = errno;
  unlinkat(folder.get(), name.c_str(), 0);
  return error;
}

}  // namespace

void examine_fabric_folder(const HostFiles& files, Findings& findings) {
  examine_runtime_dir(files, findings);
  std::string path;
  FolderRefusal refusal;
  const UniqueFd folder = open_folder(path, refusal);
  if (!folder.valid()) {
    findings.fail(
        "fabric folder",
        "cannot use the folder " + path + ": " + refusal.why + ": shm cannot open its devices",
        "let VERBATIM_FABRIC name another one: a name, or an absolute folder that is yours");
    return;
  }
  if (const int error = try_socket(folder)) {
    findings.fail("fabric folder",
                  "no socket can be bound in " + path + ": " + std::strerror(error) +
                      ": shm cannot open its devices",
                  error == ENOENT ? "mount /proc"
                                  : "let VERBATIM_FABRIC name a folder on a local file system "
                                    "(tmpfs) with room and rights for sockets");
    return;
  }
  findings.ok("fabric folder",
              path + ": processes of user " + std::to_string(geteuid()) +
                  " that see this folder reach each other by shm (containers: share it "
                  "by a bind mount)");
}

}  // namespace verbatim::cli
