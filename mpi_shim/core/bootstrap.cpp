// SPDX-License-Identifier: BSD-2-Clause
// Which launcher started this process, told from its environment, and what is asked of it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "mpi_shim/core/pmi.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

World world;
int pmi_id = -1;

namespace {

PmiWire wire;
bool is_in_barrier = false;             ///< an answer to it is awaited: nothing else can be asked
const PmiProtocol* protocol = nullptr;  ///< null: nobody started us
char reason[512];
char name_of_job[256] = "alone";

[[gnu::format(printf, 1, 2)]] const char* refuse(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  wire.close();
  protocol = nullptr;
  return reason;
}

const char* value_of(const char* name) noexcept {
  const char* const text = std::getenv(name);
  return text != nullptr && text[0] != '\0' ? text : nullptr;
}

/// Null: it is one, in `out`.
const char* number_of_variable(const char* name, long low, long high, long& out) noexcept {
  const char* const text = value_of(name);
  if (text == nullptr) return refuse("the launcher did not set %s", name);
  if (!parse_number(text, low, high, out))
    return refuse(
        "%s is \"%.40s\", which is no number from %ld to %ld: the launcher's variables "
        "are broken",
        name, text, low, high);
  return nullptr;
}

/// The address that /etc/hosts gives a name. The resolver of the C library would load libraries,
/// which a static program cannot.
bool find_in_hosts(const char* host, char* address, std::size_t room) noexcept {
  std::FILE* const file = std::fopen("/etc/hosts", "re");
  if (file == nullptr) return false;
  char line[1024];
  bool is_found = false;
  while (!is_found && std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "#\n")] = '\0';
    char* rest = nullptr;
    const char* const number = ::strtok_r(line, " \t", &rest);
    for (const char* name = ::strtok_r(nullptr, " \t", &rest); name != nullptr && !is_found;
         name = ::strtok_r(nullptr, " \t", &rest))
      if (std::strcmp(name, host) == 0) {
        (void)std::snprintf(address, room, "%s", number);
        is_found = true;
      }
  }
  (void)std::fclose(file);
  return is_found;
}

int connect_by(int family, const void* address, socklen_t length) noexcept {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, static_cast<const sockaddr*>(address), length) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

/// -1: errno says why, ENOENT that the host is not known.
int connect_to(const char* host, std::uint16_t port) noexcept {
  char number[64];
  if (std::strcmp(host, "localhost") == 0) {
    host = "127.0.0.1";
  } else if (find_in_hosts(host, number, sizeof number)) {
    host = number;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (::inet_pton(AF_INET, host, &four.sin_addr) == 1)
    return connect_by(AF_INET, &four, sizeof four);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, host, &six.sin6_addr) == 1)
    return connect_by(AF_INET6, &six, sizeof six);
  errno = ENOENT;
  return -1;
}

const char* connect_to_port() noexcept {
  const char* const where = value_of("PMI_PORT");
  const char* const colon = std::strrchr(where, ':');
  char host[256];
  if (colon == nullptr || colon == where || static_cast<std::size_t>(colon - where) >= sizeof host)
    return refuse("PMI_PORT is \"%.80s\", not host:port", where);
  std::memcpy(host, where, static_cast<std::size_t>(colon - where));
  host[colon - where] = '\0';
  long port = 0;
  if (!parse_number(colon + 1, 1, 65535, port))
    return refuse("PMI_PORT is \"%.80s\", not host:port", where);
  long id = 0;
  if (const char* const wrong = number_of_variable("PMI_ID", 0, 1 << 20, id); wrong != nullptr)
    return wrong;
  const int fd = connect_to(host, static_cast<std::uint16_t>(port));
  if (fd < 0 && errno == ENOENT)
    return refuse("PMI_PORT is \"%.80s\": the host is neither an address nor in /etc/hosts", where);
  if (fd < 0)
    return refuse("PMI_PORT is \"%.80s\": cannot connect: %s", where, std::strerror(errno));
  wire.use(fd);
  pmi_id = static_cast<int>(id);
  return nullptr;
}

const char* take_descriptor() noexcept {
  long fd = -1;
  // The first three are a program's own: closed, they could not say what is wrong.
  if (const char* const wrong = number_of_variable("PMI_FD", 3, 1 << 20, fd); wrong != nullptr)
    return wrong;
  if (::fcntl(static_cast<int>(fd), F_GETFD) < 0)
    return refuse(
        "PMI_FD is %ld, but no such descriptor is open: something between the launcher "
        "and this program closed it",
        fd);
  long rank = -1;
  long size = -1;
  if (const char* const wrong = number_of_variable("PMI_SIZE", 1, 1 << 20, size); wrong != nullptr)
    return wrong;
  if (const char* const wrong = number_of_variable("PMI_RANK", 0, 1 << 20, rank); wrong != nullptr)
    return wrong;
  if (rank >= size)
    return refuse("PMI_RANK is %ld and PMI_SIZE is %ld: the launcher's variables are broken", rank,
                  size);
  world.rank = static_cast<int>(rank);
  world.size = static_cast<int>(size);
  wire.use(static_cast<int>(fd));
  return nullptr;
}

/// Nobody speaks PMI here. A process that was started as one of several must not run alone.
const char* refuse_or_be_alone() noexcept {
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_RANK"})
    if (value_of(name) != nullptr)
      return refuse(
          "this process was started by a launcher that speaks PMIx alone (%s is %.60s), which is "
          "not supported: use mpiexec.hydra, srun --mpi=pmi2, or verbatim run",
          name, value_of(name));
  const char* const tasks = value_of("SLURM_STEP_NUM_TASKS");
  long number = 0;
  if (tasks != nullptr && parse_number(tasks, 2, 1 << 20, number))
    return refuse("srun started %ld tasks without PMI: use srun --mpi=pmi2", number);
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "PMI_ID"})
    if (value_of(name) != nullptr)
      return refuse("%s is set, but neither PMI_FD nor PMI_PORT: the launcher cannot be reached",
                    name);
  return "";
}

}  // namespace

const char* job_name() noexcept { return name_of_job; }
void set_job_name(const char* name) noexcept {
  (void)std::snprintf(name_of_job, sizeof name_of_job, "%s", name);
}

const char* begin_bootstrap() noexcept {
  long seconds = 30;
  const char* const patience = value_of("VERBATIM_MPI_LAUNCHER_SECONDS");
  if (patience != nullptr && !parse_number(patience, 1, 3600, seconds))
    return refuse("VERBATIM_MPI_LAUNCHER_SECONDS is \"%.40s\", which is no number from 1 to 3600",
                  patience);
  wire.be_patient_for(static_cast<int>(seconds) * 1000);
  const char* wrong = nullptr;
  if (value_of("PMI_FD") != nullptr) {
    wrong = take_descriptor();
  } else if (value_of("PMI_PORT") != nullptr) {
    wrong = connect_to_port();
  } else {
    return refuse_or_be_alone();
  }
  if (wrong != nullptr) return wrong;
  // Slurm's plug-in understands both; it names its jobs only where PMI-2 is what it was asked for.
  const bool is_slurm = value_of("PMI_JOBID") != nullptr && value_of("SLURM_PROCID") != nullptr;
  protocol = is_slurm && pmi_id < 0 ? &pmi2 : &pmi1;
  const int rank = world.rank;
  const int size = world.size;
  wrong = protocol->begin(wire, world);
  if (wrong != nullptr) return refuse("%s", wrong);
  if (pmi_id < 0 && (rank != world.rank || size != world.size))
    return refuse("PMI_RANK and PMI_SIZE say rank %d of %d, the launcher says %d of %d", rank, size,
                  world.rank, world.size);
  return "";
}

bool publish(const char* key, const char* value) noexcept {
  return protocol != nullptr && protocol->put(wire, key, value);
}

KeyAnswer look_up(const char* key, char* value, std::size_t room) noexcept {
  if (protocol == nullptr) return KeyAnswer::kNoSuchKey;
  return is_in_barrier ? KeyAnswer::kSilence : protocol->get(wire, key, value, room);
}

KeyAnswer look_up_mapping(char* value, std::size_t room) noexcept {
  if (protocol == nullptr) return KeyAnswer::kNoSuchKey;
  return is_in_barrier ? KeyAnswer::kSilence : protocol->get_mapping(wire, value, room);
}

bool enter_bootstrap_barrier() noexcept {
  is_in_barrier = protocol != nullptr && protocol->enter_barrier(wire);
  return protocol == nullptr || is_in_barrier;
}

BarrierState leave_bootstrap_barrier(int milliseconds) noexcept {
  if (protocol == nullptr) return BarrierState::kLeft;
  switch (protocol->leave_barrier(wire, milliseconds)) {
    case PmiWire::Got::kText:
      is_in_barrier = false;
      return BarrierState::kLeft;
    case PmiWire::Got::kNothing:
      return BarrierState::kWaiting;
    case PmiWire::Got::kGone:
      break;
  }
  return BarrierState::kBroken;
}

bool bootstrap_barrier() noexcept {
  // Others may begin much later than this process does, but not forever.
  return enter_bootstrap_barrier() &&
         leave_bootstrap_barrier(20 * wire.patience_ms()) == BarrierState::kLeft;
}

void end_bootstrap() noexcept {
  if (protocol != nullptr) protocol->finalize(wire);
  protocol = nullptr;
  wire.close();
}

void bootstrap_abort(int code, const char* message) noexcept {
  if (protocol == nullptr) return;
  protocol->abort(wire, code, message);
}

}  // namespace vmpi
