// SPDX-License-Identifier: BSD-2-Clause
// A function of MPI's that stands before the MPI's own.
#pragma once

#define VERBATIM_PMPI_ENTRY extern "C" [[gnu::visibility("default")]]
