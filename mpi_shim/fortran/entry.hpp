// SPDX-License-Identifier: BSD-2-Clause
// How a function of MPI looks from Fortran (gfortran): every argument is an address, the lengths of
// CHARACTER arguments follow as values, an error is the last argument. What C and Fortran pass for
// one type is said once here, and `call` makes of a C function what Fortran calls:
//
//   VMPI_FORTRAN(mpi_comm_rank, (From<MPI_Comm> comm, From<int*> rank, MPI_Fint* ierror)) {
//     call(PMPI_Comm_rank, ierror, nullptr, comm, rank);
//   }
//
// functions.cmake writes these for all functions but those that the files of this folder define.
// An INTEGER holds a handle, whose numbers have 32 bits; a LOGICAL is 0 or 1, which C takes as it is.
#pragma once

#include <mpi.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

/// Defines `pmpi_...` and the weak name `mpi_...`, as VMPI_ENTRY does for C.
#define VMPI_FORTRAN(name, parameters) VMPI_FORTRAN_RETURNING(void, name, parameters)
#define VMPI_FORTRAN_RETURNING(result, name, parameters)                                          \
  extern "C" [[gnu::weak, gnu::alias("p" #name "_"), gnu::visibility("default")]] result(name##_) \
      parameters;                                                                                 \
  extern "C" [[gnu::visibility("default")]] result(p##name##_) parameters

// Common blocks of mpif.h: what is passed for these constants is an address that is recognised.
extern "C" {
extern char mpi_fortran_bottom_[], mpi_fortran_in_place_[], mpi_fortran_buffer_automatic_[],
    mpi_fortran_status_ignore_[], mpi_fortran_statuses_ignore_[], mpi_fortran_errcodes_ignore_[],
    mpi_fortran_unweighted_[], mpi_fortran_weights_empty_[], mpi_fortran_argv_null_[],
    mpi_fortran_argvs_null_[];
}

namespace vmpi::fortran {

// A handle's number is the low half of what C calls it: callbacks read it where C put the handle.
static_assert(std::endian::native == std::endian::little && sizeof(MPI_Fint) == 4);

using Length = std::size_t;  ///< of a CHARACTER argument, as gfortran passes it

template <class Handle>
[[nodiscard]] Handle handle_of(MPI_Fint number) noexcept {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(static_cast<std::uint32_t>(number)));
}
template <class Handle>
[[nodiscard]] MPI_Fint number_of_handle(Handle handle) noexcept {
  return static_cast<MPI_Fint>(reinterpret_cast<std::uintptr_t>(handle));
}

template <class T>
inline constexpr bool kIsHandle =
    std::is_same_v<T, MPI_Comm> || std::is_same_v<T, MPI_Datatype> ||
    std::is_same_v<T, MPI_Errhandler> || std::is_same_v<T, MPI_File> ||
    std::is_same_v<T, MPI_Group> || std::is_same_v<T, MPI_Info> || std::is_same_v<T, MPI_Message> ||
    std::is_same_v<T, MPI_Op> || std::is_same_v<T, MPI_Request> || std::is_same_v<T, MPI_Session> ||
    std::is_same_v<T, MPI_Win>;

/// Memory of a call: on its stack while it is small. Null: no memory.
template <class T, std::size_t kNear>
class Scratch {
 public:
  explicit Scratch(std::size_t count) noexcept
      : data_{count <= kNear ? near_ : static_cast<T*>(std::calloc(count, sizeof(T)))} {}
  ~Scratch() {
    if (data_ != near_) std::free(static_cast<void*>(data_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] T* data() noexcept { return data_; }

 private:
  T near_[kNear];
  T* data_;
};

/// An array of handles, as C has it. What C has made of them is written back on demand.
template <class Handle>
class Handles {
 public:
  Handles(const MPI_Fint* from, MPI_Fint count) noexcept
      : count_{count < 0 ? 0 : static_cast<std::size_t>(count)}, copies_{count_} {
    for (std::size_t i = 0; copies_.data() != nullptr && i < count_; ++i)
      copies_.data()[i] = handle_of<Handle>(from[i]);
  }
  /// Null: no memory, which the C function refuses.
  [[nodiscard]] Handle* get() noexcept { return copies_.data(); }
  void write_back(MPI_Fint* to) noexcept {
    for (std::size_t i = 0; copies_.data() != nullptr && i < count_; ++i)
      to[i] = number_of_handle(copies_.data()[i]);
  }

 private:
  std::size_t count_;
  Scratch<Handle, 64> copies_;
};

/// C's form of an argument of C's type T. `From` is what Fortran passes; `get` is what C is given;
/// what C wrote goes back to Fortran when the argument is destroyed.
template <class T>
struct Argument;

/// Numbers come by address.
template <class T>
requires std::is_arithmetic_v<T>
struct Argument<T> {
  using From = const T*;
  Argument(From from, const Length*&) noexcept : value_{*from} {}
  [[nodiscard]] T get() const noexcept { return value_; }

 private:
  T value_;
};

template <class T>
requires kIsHandle<T>
struct Argument<T> {
  using From = const MPI_Fint*;
  Argument(From from, const Length*&) noexcept : value_{handle_of<T>(*from)} {}
  [[nodiscard]] T get() const noexcept { return value_; }

 private:
  T value_;
};

/// One handle that is written, or read and written.
template <class T>
requires kIsHandle<T>
struct Argument<T*> {
  using From = MPI_Fint*;
  Argument(From from, const Length*&) noexcept : to_{from}, value_{handle_of<T>(*from)} {}
  ~Argument() { *to_ = number_of_handle(value_); }
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  [[nodiscard]] T* get() noexcept { return &value_; }

 private:
  MPI_Fint* to_;
  T value_;
};

/// Buffers.
template <class T>
requires std::is_void_v<T>
struct Argument<T*> {
  using From = T*;
  Argument(From from, const Length*&) noexcept : value_{from} {
    if (from == mpi_fortran_bottom_) value_ = MPI_BOTTOM;
    if (from == mpi_fortran_in_place_) value_ = MPI_IN_PLACE;
    if (from == mpi_fortran_buffer_automatic_) value_ = MPI_BUFFER_AUTOMATIC;
  }
  [[nodiscard]] T* get() const noexcept { return value_; }

 private:
  T* value_;
};

/// Integers that are written, and arrays.
template <class T>
requires std::is_same_v < std::remove_const_t<T>,
int > struct Argument<T*> {
  using From = T*;
  Argument(From from, const Length*&) noexcept : value_{from} {
    const void* const place = from;
    if (place == mpi_fortran_errcodes_ignore_) value_ = MPI_ERRCODES_IGNORE;
    if (place == mpi_fortran_unweighted_) value_ = MPI_UNWEIGHTED;
    if (place == mpi_fortran_weights_empty_) value_ = MPI_WEIGHTS_EMPTY;
  }
  [[nodiscard]] T* get() const noexcept { return value_; }

 private:
  T* value_;
};

template <class T>
requires std::is_same_v<std::remove_const_t<T>, MPI_Status>
struct Argument<T*> {
  using From = T*;
  Argument(From from, const Length*&) noexcept : value_{from} {
    const void* const place = from;
    if (place == mpi_fortran_status_ignore_ || place == mpi_fortran_statuses_ignore_)
      value_ = MPI_STATUS_IGNORE;
  }
  [[nodiscard]] T* get() const noexcept { return value_; }

 private:
  T* value_;
};
static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint));

// Passed on as they are: addresses and counts of eight bytes, rows of an array of three columns,
// and functions whose arguments are addresses in C already.
template <class T>
struct PassedOn {
  using From = T;
  PassedOn(From from, const Length*&) noexcept : value_{from} {}
  [[nodiscard]] T get() const noexcept { return value_; }

 private:
  T value_;
};
template <class T>
requires std::is_same_v<std::remove_const_t<T>, MPI_Count>
struct Argument<T*> : PassedOn<T*> {
  using PassedOn<T*>::PassedOn;
};
template <>
struct Argument<int (*)[3]> : PassedOn<int (*)[3]> {
  using PassedOn::PassedOn;
};
template <class T>
requires std::is_same_v<T, MPI_User_function> || std::is_same_v<T, MPI_Comm_errhandler_function> ||
    std::is_same_v<T, MPI_File_errhandler_function> ||
    std::is_same_v<T, MPI_Session_errhandler_function> ||
    std::is_same_v<T, MPI_Win_errhandler_function>
struct Argument<T*> : PassedOn<T*> {
  using PassedOn<T*>::PassedOn;
};

/// A text without the blanks that pad it, of the trailing side alone or of both.
class InText {
 public:
  InText(const char* from, Length length, bool strip_leading) noexcept;
  [[nodiscard]] const char* get() noexcept { return copy_.data(); }

 private:
  Scratch<char, 512> copy_;
};
template <>
struct Argument<const char*> {
  using From = const char*;
  Argument(From from, const Length*& lengths) noexcept : text_{from, *lengths++, false} {}
  [[nodiscard]] const char* get() noexcept { return text_.get(); }

 private:
  InText text_;
};

/// A text that C writes: as much of it as there is room for, then blanks. What C has not written
/// leaves the variable as it was.
template <>
struct Argument<char*> {
  using From = char*;
  Argument(From from, const Length*& lengths) noexcept : to_{from}, length_{*lengths++} {
    text_[0] = kNotWritten;
    text_[1] = '\0';
  }
  ~Argument();
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  [[nodiscard]] char* get() noexcept { return text_; }

 private:
  static constexpr char kNotWritten = '\x01';
  char* to_;
  Length length_;
  char text_[MPI_MAX_LIBRARY_VERSION_STRING];
};

template <class T>
using From = typename Argument<T>::From;

template <class... C>
struct Call {
  /// The arguments are made in their order, which the lengths need: a list in braces sees to it.
  template <class Function>
  Call(Function function, MPI_Fint* ierror, Argument<C>&&... arguments) noexcept {
    *ierror = function(arguments.get()...);
  }
};

/// `lengths` are those of the CHARACTER arguments, in their order.
template <class... C>
void call(int (*function)(C...), MPI_Fint* ierror, [[maybe_unused]] const Length* lengths,
          From<C>... arguments) noexcept {
  Call<C...>{function, ierror, Argument<C>{arguments, lengths}...};
}

}  // namespace vmpi::fortran
