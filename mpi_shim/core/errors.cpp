// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/errors.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/handle.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

HandleTable<HandleKind::kErrhandler, ErrorHandler> handlers;

constexpr int kLine = 1024;

/// "rank 3 of 8: ", or when it is.
int print_place(char* out, std::size_t room) noexcept {
  if (world.stage == Stage::kBefore) return std::snprintf(out, room, "before MPI_Init: ");
  if (world.stage == Stage::kFinalized) return std::snprintf(out, room, "after MPI_Finalize: ");
  return std::snprintf(out, room, "rank %d of %d: ", world.rank, world.size);
}

/// A launcher that is told to end all may read no more of what we wrote into its pipe. One that does
/// not read costs a moment.
void await_reader(int fd) noexcept {
  constexpr int kMilliseconds = 100;
  int unread = 0;
  for (int i = 0; i < kMilliseconds && ::ioctl(fd, FIONREAD, &unread) == 0 && unread != 0; ++i) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

[[noreturn, gnu::cold]] void end_all(int code, const char* text) noexcept {
  char line[kLine + 64];
  const int place = print_place(line, sizeof line);
  std::snprintf(line + place, sizeof line - static_cast<std::size_t>(place) - 1, "%s", text);
  // What the program printed before comes before.
  std::fflush(stdout);
  std::size_t length = std::strlen(line);
  line[length++] = '\n';
  const bool is_told = ::write(STDERR_FILENO, line, length) > 0;
  line[length - 1] = '\0';
  if (is_told) await_reader(STDERR_FILENO);
  bootstrap_abort(code, is_told ? "" : line);
  ::_exit(code);
}

}  // namespace

void abort_all(int code, const char* format, ...) noexcept {
  char text[kLine];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  end_all(code, text);
}

int raise(Comm* comm, int error, const char* function, const char* format, ...) noexcept {
  if (comm == nullptr) comm = find_comm(MPI_COMM_SELF);
  const std::uint32_t number = comm != nullptr ? comm->error_handler : 0;
  if (number == number_of(MPI_ERRORS_RETURN)) return error;
  if (ErrorHandler* const handler = find_error_handler_by_number(number)) {
    // The program's function may call us, and free the communicator.
    auto handle = reinterpret_cast<MPI_Comm>(static_cast<std::uintptr_t>(comm->handle));
    big_lock.unlock();
    handler->function(&handle, &error);
    big_lock.lock();
    return error;
  }
  char text[kLine];
  int length = std::snprintf(text, sizeof text, "%s: ", function);
  std::va_list arguments;
  va_start(arguments, format);
  length += std::vsnprintf(text + length, sizeof text - static_cast<std::size_t>(length), format,
                           arguments);
  va_end(arguments);
  if (length > kLine - 64) length = kLine - 64;
  const char* const name = text_of(error);
  const int name_length = name != nullptr ? static_cast<int>(std::strcspn(name, ":")) : 0;
  if (name_length != 0)
    std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), " (%.*s)",
                  name_length > 60 ? 60 : name_length, name);
  const int code = class_of(error);
  end_all(code > 0 && code < 256 ? code : 1, text);
}

ErrorHandler* make_error_handler(MPI_Comm_errhandler_function* function) noexcept {
  ErrorHandler* found = nullptr;
  handlers.each([&](ErrorHandler& handler) {
    if (handler.function == function) found = &handler;
  });
  if (found == nullptr) found = handlers.make();
  if (found == nullptr) return nullptr;
  found->function = function;
  ++found->program_handles;
  return found;
}

ErrorHandler* find_error_handler_by_number(std::uint32_t number) noexcept {
  return handlers.find(number);
}

ErrorHandler* find_error_handler(MPI_Errhandler handle) noexcept {
  ErrorHandler* const handler = handlers.find(number_of(handle));
  return handler != nullptr && handler->program_handles > 0 ? handler : nullptr;
}

void drop_error_handlers() noexcept { handlers.clear(); }

}  // namespace vmpi
