// SPDX-License-Identifier: BSD-2-Clause
// A process has this library's MPI, or teams: the engine is one, and so is its world. The argument
// says what comes first; what comes second is refused.
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <verbatim/coll.h>

int main(int argc, char** argv) {
  struct vbt_coll_team_attr attr = {.size = 1};
  struct vbt_coll_team* team = NULL;
  if (argc == 2 && strcmp(argv[1], "mpi") == 0) {
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return 1;
    if (vbt_coll_create_team(&attr, sizeof attr, &team) != EBUSY || team != NULL) return 2;
    printf("refused: %s\n", vbt_coll_why());
    return MPI_Finalize() != MPI_SUCCESS;
  }
  int is_initialized = 1;
  if (vbt_coll_create_team(&attr, sizeof attr, &team) != 0) return 3;
  if (MPI_Initialized(&is_initialized) != MPI_SUCCESS || is_initialized) return 4;
  return MPI_Init(NULL, NULL);  // says why, and ends the process
}
