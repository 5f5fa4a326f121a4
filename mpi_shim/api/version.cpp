// SPDX-License-Identifier: BSD-2-Clause
// Of what this is a version. At any time, from any thread.
#include <cstring>

#include "mpi_shim/api/entry.hpp"

VMPI_ENTRY(int, MPI_Get_version, (int* version, int* subversion)) {
  if (version == nullptr || subversion == nullptr) return MPI_ERR_ARG;
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Abi_get_version, (int* abi_major, int* abi_minor)) {
  if (abi_major == nullptr || abi_minor == nullptr) return MPI_ERR_ARG;
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Get_library_version, (char* version, int* resultlen)) {
  static constexpr char kText[] =
      "Verbatim " VERBATIM_VERSION
      " (MPI on its verbs runtime; the interface of MPI 5.0, of which functions that it does not "
      "have fail with MPI_ERR_UNSUPPORTED_OPERATION)";
  static_assert(sizeof kText <= MPI_MAX_LIBRARY_VERSION_STRING);
  if (version == nullptr || resultlen == nullptr) return MPI_ERR_ARG;
  std::memcpy(version, kText, sizeof kText);
  *resultlen = static_cast<int>(sizeof kText) - 1;
  return MPI_SUCCESS;
}
