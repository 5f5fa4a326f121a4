// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/info.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

HandleTable<HandleKind::kInfo, Info> table;
Info* environment = nullptr;  ///< in the table too

}  // namespace

const char* Info::get(const char* key) const noexcept {
  for (const InfoEntry& entry : entries)
    if (std::strcmp(entry.key, key) == 0) return entry.value;
  return nullptr;
}

bool Info::set(const char* key, const char* value) noexcept {
  char* const copy = ::strdup(value);
  if (copy == nullptr) return false;
  for (InfoEntry& entry : entries) {
    if (std::strcmp(entry.key, key) != 0) continue;
    std::free(entry.value);
    entry.value = copy;
    return true;
  }
  char* const name = ::strdup(key);
  if (name != nullptr && entries.push_back(InfoEntry{name, copy})) return true;
  std::free(name);
  std::free(copy);
  return false;
}

bool Info::remove(const char* key) noexcept {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::strcmp(entries[i].key, key) != 0) continue;
    std::free(entries[i].key);
    std::free(entries[i].value);
    for (; i + 1 < entries.size(); ++i) entries[i] = entries[i + 1];
    entries.pop_back();
    return true;
  }
  return false;
}

void Info::clear() noexcept {
  for (const InfoEntry& entry : entries) {
    std::free(entry.key);
    std::free(entry.value);
  }
  entries.clear();
}

Info* make_info() noexcept { return table.make(); }

void release(Info& info) noexcept { table.release(info); }

namespace {

/// The program's arguments as the kernel has them: `text` is a row of strings.
int read_arguments(char* text, std::size_t room, char** arguments, int most) noexcept {
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = ::read(file, text, room - 1);
  ::close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  int count = 0;
  for (char* at = text; at < text + length && count < most; at += std::strlen(at) + 1)
    arguments[count++] = at;
  return count;
}

[[nodiscard]] const char* name_of_thread_level(int level) noexcept {
  switch (level) {
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
    default:
      return "MPI_THREAD_SINGLE";
  }
}

[[nodiscard]] Info* find_environment() noexcept {
  if (environment != nullptr) return environment;
  Info* const made = make_info();
  if (made == nullptr) return nullptr;
  char text[4096];
  char* arguments[256];
  const int count = read_arguments(text, sizeof text, arguments, 256);
  if (!describe_program(*made, count, arguments)) {
    release(*made);
    return nullptr;
  }
  environment = made;
  return made;
}

}  // namespace

bool describe_program(Info& info, int count, char** arguments) noexcept {
  bool is_told = true;
  if (count > 0) {
    char command[MPI_MAX_INFO_VAL];
    std::snprintf(command, sizeof command, "%s", arguments[0]);
    is_told = info.set("command", command);
    char joined[MPI_MAX_INFO_VAL] = "";
    std::size_t length = 0;
    for (int i = 1; i < count && length < sizeof joined - 1; ++i) {
      const int more = std::snprintf(joined + length, sizeof joined - length, "%s%s",
                                     i == 1 ? "" : " ", arguments[i]);
      length += static_cast<std::size_t>(more);
    }
    is_told = is_told && info.set("argv", joined);
  }
  char number[16];
  std::snprintf(number, sizeof number, "%d", world.size);
  is_told = is_told && info.set("maxprocs", number) && info.set("soft", number);
  utsname system;
  if (::uname(&system) == 0)
    is_told = is_told && info.set("host", system.nodename) && info.set("arch", system.machine);
  char folder[MPI_MAX_INFO_VAL];
  if (::getcwd(folder, sizeof folder) != nullptr) is_told = is_told && info.set("wdir", folder);
  if (world.stage != Stage::kBefore)
    is_told = is_told && info.set("thread_level", name_of_thread_level(world.thread_level));
  return is_told;
}

Info* find_info(MPI_Info handle) noexcept {
  const std::uint32_t number = number_of(handle);
  return number == number_of(MPI_INFO_ENV) ? find_environment() : table.find(number);
}

void drop_infos() noexcept {
  environment = nullptr;
  table.clear();
}

}  // namespace vmpi
