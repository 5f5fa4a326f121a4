// SPDX-License-Identifier: BSD-2-Clause
// What an MPI of the standard ABI shows of itself, loaded beside one that has handles of its own.
int PMPI_Abi_get_version(int* major, int* minor);
int PMPI_Abi_get_version(int* major, int* minor) {
  *major = 1;
  *minor = 0;
  return 0;
}
