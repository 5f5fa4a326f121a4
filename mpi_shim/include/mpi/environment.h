// SPDX-License-Identifier: BSD-2-Clause
// Start and end of MPI, versions, time, memory. Included by mpi.h.
#ifndef VERBATIM_MPI_ENVIRONMENT_H
#define VERBATIM_MPI_ENVIRONMENT_H

// Once per process, before all but the inquiries here. `argc` and `argv` may be null; they are left
// as they are. MPI_Init asks for MPI_THREAD_SINGLE.
int MPI_Init(int* argc, char*** argv);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Finalize(void);
// Ends all ranks of the job with this exit code.
int MPI_Abort(MPI_Comm comm, int errorcode);

// At any time, from any thread.
int MPI_Initialized(int* flag);
int MPI_Finalized(int* flag);
int MPI_Get_version(int* version, int* subversion);
int MPI_Get_library_version(char* version, int* resultlen);
int MPI_Abi_get_version(int* abi_major, int* abi_minor);
int MPI_Abi_get_info(MPI_Info* info);

int MPI_Query_thread(int* provided);
int MPI_Is_thread_main(int* flag);
int MPI_Get_processor_name(char* name, int* resultlen);
int MPI_Get_hw_resource_info(MPI_Info* hw_info);

// Seconds since a moment in the past, and the length of the clock's step.
double MPI_Wtime(void);
double MPI_Wtick(void);

// Memory that messages reach fastest: other ranks of the host map it.
int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr);
int MPI_Free_mem(void* base);

int MPI_Pcontrol(const int level, ...);

#endif  // VERBATIM_MPI_ENVIRONMENT_H
