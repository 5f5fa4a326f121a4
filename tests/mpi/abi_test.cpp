// SPDX-License-Identifier: BSD-2-Clause
// All that C sees holds in C++ too.
#include "tests/mpi/abi_test.c"
