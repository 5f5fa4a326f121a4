// SPDX-License-Identifier: BSD-2-Clause
// What tests share that run as ranks of an MPI program. Every rank runs every test; a test expects
// (EXPECT_) and does not leave early, so that its ranks stay together.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

namespace verbatim::mpi {

inline int rank_in(MPI_Comm comm) {
  int rank = -1;
  EXPECT_EQ(MPI_Comm_rank(comm, &rank), MPI_SUCCESS);
  return rank;
}
inline int size_of(MPI_Comm comm) {
  int size = -1;
  EXPECT_EQ(MPI_Comm_size(comm, &size), MPI_SUCCESS);
  return size;
}

/// While it lives, errors of a communicator are returned.
class ErrorsAreReturned {
 public:
  explicit ErrorsAreReturned(MPI_Comm comm) : comm_{comm} {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~ErrorsAreReturned() { MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL); }
  ErrorsAreReturned(const ErrorsAreReturned&) = delete;
  ErrorsAreReturned& operator=(const ErrorsAreReturned&) = delete;

 private:
  MPI_Comm comm_;
};

inline int class_of(int error) {
  int error_class = -1;
  MPI_Error_class(error, &error_class);
  return error_class;
}

inline MPI_Datatype type_of(char) { return MPI_CHAR; }
inline MPI_Datatype type_of(short) { return MPI_SHORT; }
inline MPI_Datatype type_of(int) { return MPI_INT; }
inline MPI_Datatype type_of(unsigned) { return MPI_UNSIGNED; }
inline MPI_Datatype type_of(long long) { return MPI_LONG_LONG; }
inline MPI_Datatype type_of(double) { return MPI_DOUBLE; }

}  // namespace verbatim::mpi
