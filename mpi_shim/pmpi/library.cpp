// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/pmpi/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstring>
#include <string_view>

#include "mpi_shim/pmpi/handles.hpp"
#include "mpi_shim/pmpi/teller.hpp"
#include "runtime/base/log.hpp"

namespace vmpi::pmpi {

constinit std::atomic<const Library*> known_library{nullptr};

namespace {

using verbatim::log_error;
using verbatim::log_info;
using verbatim::log_warn;

constinit Library found;
constinit void* loaded_aside = nullptr;

/// Files that may be an MPI, as the loader names them.
struct Candidates {
  static constexpr std::size_t kMost = 8;
  static constexpr std::size_t kLongestName = 512;
  char names[kMost][kLongestName];
  std::size_t count;
};

int note_candidate(dl_phdr_info* info, std::size_t, void* context) noexcept {
  Candidates& candidates = *static_cast<Candidates*>(context);
  const std::string_view file = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::size_t slash = file.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  if (!name.starts_with("libmpi") || file.size() >= Candidates::kLongestName) return 0;
  std::memcpy(candidates.names[candidates.count], file.data(), file.size() + 1);
  return ++candidates.count == Candidates::kMost ? 1 : 0;
}

/// An MPI that a plugin has loaded (a Python module, say) is in nobody's global scope, and its calls
/// come here all the same.
void look_aside() noexcept {
  static constinit Candidates candidates = {};
  (void)::dl_iterate_phdr(note_candidate, &candidates);
  for (std::size_t i = 0; i < candidates.count; ++i) {
    void* const loaded = ::dlopen(candidates.names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (loaded == nullptr) continue;
    if (::dlsym(loaded, "PMPI_Barrier") != nullptr) {
      loaded_aside = loaded;
      return;
    }
    ::dlclose(loaded);
  }
}

struct Names {
  const char* open_mpi;
  Handle mpich;
};
constexpr Names kCommWorld = {"ompi_mpi_comm_world", 0x44000000};
constexpr Names kCommSelf = {"ompi_mpi_comm_self", 0x44000001};
constexpr Names kCommNull = {"ompi_mpi_comm_null", 0x04000000};
constexpr Names kTypeNull = {"ompi_mpi_datatype_null", 0x0c000000};

[[nodiscard]] Handle handle_by(const Names& names) noexcept {
  if (found.family == Family::kMpich) return names.mpich;
  return reinterpret_cast<Handle>(find_symbol(names.open_mpi));
}

void find_functions() noexcept {
#define VERBATIM_PMPI_FIND(member, name, arguments) \
  found.call.member = reinterpret_cast<int(*) arguments>(find_symbol(name));
  VERBATIM_PMPI_NEEDED(VERBATIM_PMPI_FIND)
  VERBATIM_PMPI_PASSED_ON(VERBATIM_PMPI_FIND)
#undef VERBATIM_PMPI_FIND
}

[[nodiscard]] const char* first_that_is_missing() noexcept {
#define VERBATIM_PMPI_NEED(member, name, arguments) \
  if (found.call.member == nullptr) return name;
  VERBATIM_PMPI_NEEDED(VERBATIM_PMPI_NEED)
#undef VERBATIM_PMPI_NEED
  return nullptr;
}

/// "Open MPI v4.1.4", "MPICH 4.0.2": what else it says tells how it was built.
void find_version() noexcept {
  constexpr int kMostOfAll = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING of either, at most
  static constinit char text[kMostOfAll] = {};
  int length = 0;
  if (found.call.get_library_version(text, &length) != kSuccess) return;
  std::string_view line = text;
  line = line.substr(0, line.find_first_of("\n,"));
  constexpr std::string_view kMark = " Version:";  // of MPICH, and tabs behind it
  const std::size_t mark = line.find(kMark);
  std::size_t at = 0;
  for (std::size_t i = 0; i < line.size() && at + 1 < sizeof found.version; ++i) {
    if (i == mark) i += kMark.size();
    found.version[at++] = line[i] == '\t' ? ' ' : line[i];
  }
  found.version[at] = '\0';
}

/// Those whose handles are known to be what is assumed of them here.
[[nodiscard]] Family family_of(std::string_view version) noexcept {
  // Where this is, handles may be those of the standard ABI, whichever MPI it is.
  if (find_symbol("PMPI_Abi_get_version") != nullptr) return Family::kOther;
  constexpr std::string_view kOpenMpi[] = {"Open MPI v4.", "Open MPI v5."};
  constexpr std::string_view kMpich[] = {"MPICH 3.", "MPICH 4."};
  for (const std::string_view known : kOpenMpi)
    if (version.starts_with(known)) return Family::kOpenMpi;
  for (const std::string_view known : kMpich)
    if (version.starts_with(known)) return Family::kMpich;
  return Family::kOther;
}

void find() noexcept {
  find_functions();
  if (found.call.barrier == nullptr) {
    log_error(
        "libverbatim_pmpi.so is called, but there is no PMPI_Barrier: is the program linked with "
        "a shared library of an MPI?");
    return;
  }
  if (const char* const missing = first_that_is_missing(); missing != nullptr) {
    if (is_mine_to_tell(Line::kLibrary))
      log_warn("libverbatim_pmpi.so takes no collectives: this MPI has no %s", missing);
    return;
  }
  find_version();
  found.family = family_of(found.version);
  if (found.family == Family::kOther) {
    if (is_mine_to_tell(Line::kLibrary))
      log_warn(
          "libverbatim_pmpi.so takes no collectives of '%s': it knows the handles of Open MPI 4 "
          "and 5, and of MPICH 3 and 4, where they are not those of the standard ABI",
          found.version);
    return;
  }
  const bool is_mpich = found.family == Family::kMpich;
  found.handle_bits = is_mpich ? 0xffffffff : ~Handle{0};
  found.comm_world = handle_by(kCommWorld);
  found.comm_self = handle_by(kCommSelf);
  found.comm_null = handle_by(kCommNull);
  found.type_null = handle_by(kTypeNull);
  found.in_place = reinterpret_cast<const void*>(is_mpich ? std::intptr_t{-1} : std::intptr_t{1});
  found.error_truncate = is_mpich ? 14 : 15;
  found.error_other = is_mpich ? 15 : 16;
  if (found.comm_world == 0 || found.comm_self == 0 || !find_handles(found)) {
    if (is_mine_to_tell(Line::kLibrary))
      log_warn(
          "libverbatim_pmpi.so takes no collectives of %s: its predefined handles are not there",
          found.version);
    found.family = Family::kOther;
    return;
  }
  log_info("libverbatim_pmpi.so found %s", found.version);
}

}  // namespace

void* find_symbol(const char* name) noexcept {
  void* const symbol = ::dlsym(RTLD_DEFAULT, name);
  if (symbol != nullptr || loaded_aside == nullptr) return symbol;
  return ::dlsym(loaded_aside, name);
}

const Library& find_library() noexcept {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)::pthread_once(&once, [] {
    if (::dlsym(RTLD_DEFAULT, "PMPI_Barrier") == nullptr) look_aside();
    find();
    // Publishes what was found; pairs with the load in library().
    known_library.store(&found, std::memory_order_release);
  });
  return found;
}

int is_missing(const char* name) noexcept {
  log_error("libverbatim_pmpi.so: this MPI has no %s, which the program calls", name);
  return library().error_other != 0 ? library().error_other : 1;
}

}  // namespace vmpi::pmpi
