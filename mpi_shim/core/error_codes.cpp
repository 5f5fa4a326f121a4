// SPDX-License-Identifier: BSD-2-Clause
// Error classes of the standard, and classes, codes and texts that programs add.
#include <climits>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/errors.hpp"

namespace vmpi {
namespace {

// In the order of their numbers.
constexpr const char* kClasses[] = {
    "MPI_SUCCESS: no error",
    "MPI_ERR_BUFFER: invalid buffer",
    "MPI_ERR_COUNT: invalid count",
    "MPI_ERR_TYPE: invalid datatype",
    "MPI_ERR_TAG: invalid tag",
    "MPI_ERR_COMM: invalid communicator",
    "MPI_ERR_RANK: invalid rank",
    "MPI_ERR_REQUEST: invalid request",
    "MPI_ERR_ROOT: invalid root",
    "MPI_ERR_GROUP: invalid group",
    "MPI_ERR_OP: invalid operation, or not defined on the datatype",
    "MPI_ERR_TOPOLOGY: invalid topology",
    "MPI_ERR_DIMS: invalid dimensions",
    "MPI_ERR_ARG: invalid argument",
    "MPI_ERR_UNKNOWN: unknown error",
    "MPI_ERR_TRUNCATE: the message is longer than the receive buffer",
    "MPI_ERR_OTHER: other error",
    "MPI_ERR_INTERN: internal error",
    "MPI_ERR_PENDING: the operation has not ended yet",
    "MPI_ERR_IN_STATUS: the error is in the status",
    "MPI_ERR_ACCESS: permission denied",
    "MPI_ERR_AMODE: invalid access mode",
    "MPI_ERR_ASSERT: invalid assertion",
    "MPI_ERR_BAD_FILE: invalid file name",
    "MPI_ERR_BASE: invalid base address",
    "MPI_ERR_CONVERSION: a conversion of data failed",
    "MPI_ERR_DISP: invalid displacement",
    "MPI_ERR_DUP_DATAREP: the data representation exists already",
    "MPI_ERR_FILE_EXISTS: the file exists",
    "MPI_ERR_FILE_IN_USE: the file is in use",
    "MPI_ERR_FILE: invalid file handle",
    "MPI_ERR_INFO_KEY: the info key is empty or too long",
    "MPI_ERR_INFO_NOKEY: no such info key",
    "MPI_ERR_INFO_VALUE: the info value is too long",
    "MPI_ERR_INFO: invalid info object",
    "MPI_ERR_IO: input or output failed",
    "MPI_ERR_KEYVAL: invalid keyval",
    "MPI_ERR_LOCKTYPE: invalid type of lock",
    "MPI_ERR_NAME: the service name is not published",
    "MPI_ERR_NO_MEM: out of memory",
    "MPI_ERR_NOT_SAME: an argument is not the same at all processes",
    "MPI_ERR_NO_SPACE: no space",
    "MPI_ERR_NO_SUCH_FILE: the file does not exist",
    "MPI_ERR_PORT: invalid port name",
    "MPI_ERR_QUOTA: quota exceeded",
    "MPI_ERR_READ_ONLY: read-only file or file system",
    "MPI_ERR_RMA_ATTACH: the memory cannot be attached",
    "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window",
    "MPI_ERR_RMA_RANGE: the target memory is not part of the window",
    "MPI_ERR_RMA_SHARED: the memory cannot be shared",
    "MPI_ERR_RMA_SYNC: wrong synchronization of a window",
    "MPI_ERR_SERVICE: the service name cannot be unpublished",
    "MPI_ERR_SIZE: invalid size",
    "MPI_ERR_SPAWN: processes could not be spawned",
    "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation",
    "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation",
    "MPI_ERR_WIN: invalid window",
    "MPI_ERR_RMA_FLAVOR: the window has the wrong flavor",
    "MPI_ERR_PROC_ABORTED: a process has died or aborted",
    "MPI_ERR_VALUE_TOO_LARGE: the value is too large for its type",
    "MPI_ERR_SESSION: invalid session",
    "MPI_ERR_ERRHANDLER: invalid error handler",
    "MPI_ERR_ABI: the binary interfaces differ",
};
static_assert(sizeof kClasses / sizeof kClasses[0] == MPI_ERR_ABI + 1);

struct Added {
  int error_class;  ///< itself, for a class
  bool is_live;
  char* text;  ///< null: none
};

constexpr int kFirst = MPI_ERR_LASTCODE + 1;

// Of `last - kFirst + 1` elements.
Added* added = nullptr;
int last = MPI_ERR_LASTCODE;

[[nodiscard]] Added* find_added(int error) noexcept {
  if (error < kFirst || error > last || !added[error - kFirst].is_live) return nullptr;
  return &added[error - kFirst];
}

[[nodiscard]] int add(int error_class) noexcept {
  if (last == INT_MAX) return 0;
  const auto count = static_cast<std::size_t>(last - kFirst + 1);
  auto* const more =
      static_cast<Added*>(std::realloc(static_cast<void*>(added), (count + 1) * sizeof(Added)));
  if (more == nullptr) return 0;
  added = more;
  ++last;
  added[count] = Added{error_class != 0 ? error_class : last, true, nullptr};
  return last;
}

}  // namespace

int class_of(int error) noexcept {
  const Added* const mine = find_added(error);
  return mine != nullptr ? mine->error_class : error;
}

const char* text_of(int error) noexcept {
  if (error >= 0 && error <= MPI_ERR_ABI) return kClasses[error];
  if (error == MPI_ERR_LASTCODE) return "MPI_ERR_LASTCODE: the last error class";
  const Added* const mine = find_added(error);
  if (mine == nullptr) return nullptr;
  return mine->text != nullptr ? mine->text : "";
}

int add_error_class() noexcept { return add(0); }

int add_error_code(int error_class) noexcept { return add(error_class); }

int set_error_text(int error, const char* text) noexcept {
  Added* const mine = find_added(error);
  if (mine == nullptr) return MPI_ERR_ARG;
  char* copy = nullptr;
  if (text != nullptr) {
    copy = ::strndup(text, MPI_MAX_ERROR_STRING - 1);
    if (copy == nullptr) return MPI_ERR_NO_MEM;
  }
  std::free(mine->text);
  mine->text = copy;
  return MPI_SUCCESS;
}

int remove_error(int error, bool is_class) noexcept {
  Added* const mine = find_added(error);
  if (mine == nullptr || (mine->error_class == error) != is_class) return MPI_ERR_ARG;
  if (is_class)
    for (int i = kFirst; i <= last; ++i)
      if (i != error && added[i - kFirst].is_live && added[i - kFirst].error_class == error)
        return MPI_ERR_ARG;
  std::free(mine->text);
  *mine = Added{0, false, nullptr};
  while (last >= kFirst && !added[last - kFirst].is_live) --last;
  return MPI_SUCCESS;
}

int* last_used_code() noexcept { return &last; }

void drop_added_errors() noexcept {
  for (int i = kFirst; i <= last; ++i) std::free(added[i - kFirst].text);
  std::free(static_cast<void*>(added));
  added = nullptr;
  last = MPI_ERR_LASTCODE;
}

}  // namespace vmpi
