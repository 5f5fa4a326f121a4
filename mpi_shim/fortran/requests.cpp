// SPDX-License-Identifier: BSD-2-Clause
// Functions with lists of requests: handles have four bytes in Fortran and eight in C, and Fortran
// counts from 1.
#include "mpi_shim/fortran/entry.hpp"

using namespace vmpi::fortran;

namespace {

[[nodiscard]] MPI_Status* statuses_of(MPI_Status* statuses) noexcept {
  const Length* none = nullptr;
  return Argument<MPI_Status*>{statuses, none}.get();
}

/// From what C found, or MPI_UNDEFINED. A request that failed is told too.
void write_index(int error, int found, MPI_Fint* index) noexcept {
  if (found != MPI_UNDEFINED)
    *index = found + 1;
  else if (error == MPI_SUCCESS)
    *index = MPI_UNDEFINED;
}

using SomeFunction = int(int, MPI_Request[], int*, int[], MPI_Status[]);

void complete_some(SomeFunction* function, const MPI_Fint* incount, MPI_Fint requests[],
                   MPI_Fint* outcount, MPI_Fint indices[], MPI_Status statuses[],
                   MPI_Fint* ierror) noexcept {
  Handles<MPI_Request> handles{requests, *incount};
  int completed = MPI_UNDEFINED;
  *ierror = function(*incount, handles.get(), &completed, indices, statuses_of(statuses));
  handles.write_back(requests);
  if (*ierror != MPI_SUCCESS && *ierror != MPI_ERR_IN_STATUS) return;
  *outcount = completed;
  for (int i = 0; completed != MPI_UNDEFINED && i < completed; ++i) ++indices[i];
}

}  // namespace

VMPI_FORTRAN(mpi_startall, (const MPI_Fint* count, MPI_Fint requests[], MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  *ierror = PMPI_Startall(*count, handles.get());
  handles.write_back(requests);
}

VMPI_FORTRAN(mpi_waitall, (const MPI_Fint* count, MPI_Fint requests[], MPI_Status statuses[],
                           MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  *ierror = PMPI_Waitall(*count, handles.get(), statuses_of(statuses));
  handles.write_back(requests);
}

VMPI_FORTRAN(mpi_testall, (const MPI_Fint* count, MPI_Fint requests[], MPI_Fint* flag,
                           MPI_Status statuses[], MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  *ierror = PMPI_Testall(*count, handles.get(), flag, statuses_of(statuses));
  handles.write_back(requests);
}

VMPI_FORTRAN(mpi_waitany, (const MPI_Fint* count, MPI_Fint requests[], MPI_Fint* index,
                           MPI_Status* status, MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  int found = MPI_UNDEFINED;
  *ierror = PMPI_Waitany(*count, handles.get(), &found, statuses_of(status));
  handles.write_back(requests);
  write_index(*ierror, found, index);
}

VMPI_FORTRAN(mpi_testany, (const MPI_Fint* count, MPI_Fint requests[], MPI_Fint* index,
                           MPI_Fint* flag, MPI_Status* status, MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  int found = MPI_UNDEFINED;
  *ierror = PMPI_Testany(*count, handles.get(), &found, flag, statuses_of(status));
  handles.write_back(requests);
  write_index(*ierror, found, index);
}

VMPI_FORTRAN(mpi_waitsome, (const MPI_Fint* incount, MPI_Fint requests[], MPI_Fint* outcount,
                            MPI_Fint indices[], MPI_Status statuses[], MPI_Fint* ierror)) {
  complete_some(PMPI_Waitsome, incount, requests, outcount, indices, statuses, ierror);
}

VMPI_FORTRAN(mpi_testsome, (const MPI_Fint* incount, MPI_Fint requests[], MPI_Fint* outcount,
                            MPI_Fint indices[], MPI_Status statuses[], MPI_Fint* ierror)) {
  complete_some(PMPI_Testsome, incount, requests, outcount, indices, statuses, ierror);
}

VMPI_FORTRAN(mpi_request_get_status_all,
             (const MPI_Fint* count, const MPI_Fint requests[], MPI_Fint* flag,
              MPI_Status statuses[], MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  *ierror = PMPI_Request_get_status_all(*count, handles.get(), flag, statuses_of(statuses));
}

VMPI_FORTRAN(mpi_request_get_status_any,
             (const MPI_Fint* count, const MPI_Fint requests[], MPI_Fint* index, MPI_Fint* flag,
              MPI_Status* status, MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *count};
  int found = MPI_UNDEFINED;
  *ierror = PMPI_Request_get_status_any(*count, handles.get(), &found, flag, statuses_of(status));
  write_index(*ierror, found, index);
}

VMPI_FORTRAN(mpi_request_get_status_some,
             (const MPI_Fint* incount, const MPI_Fint requests[], MPI_Fint* outcount,
              MPI_Fint indices[], MPI_Status statuses[], MPI_Fint* ierror)) {
  Handles<MPI_Request> handles{requests, *incount};
  int completed = MPI_UNDEFINED;
  *ierror = PMPI_Request_get_status_some(*incount, handles.get(), &completed, indices,
                                         statuses_of(statuses));
  if (*ierror != MPI_SUCCESS) return;
  *outcount = completed;
  for (int i = 0; completed != MPI_UNDEFINED && i < completed; ++i) ++indices[i];
}

namespace {

/// Functions and the state of a generalized request that Fortran has started.
struct Generalized {
  void (*query)(MPI_Aint* extra_state, MPI_Status* status, MPI_Fint* ierror);
  void (*free)(MPI_Aint* extra_state, MPI_Fint* ierror);
  void (*cancel)(MPI_Aint* extra_state, MPI_Fint* complete, MPI_Fint* ierror);
  MPI_Aint extra_state;
};

int query(void* state, MPI_Status* status) {
  auto& request = *static_cast<Generalized*>(state);
  MPI_Fint error = MPI_SUCCESS;
  request.query(&request.extra_state, status, &error);
  return error;
}
/// The last call for a request.
int free_request(void* state) {
  auto& request = *static_cast<Generalized*>(state);
  MPI_Fint error = MPI_SUCCESS;
  request.free(&request.extra_state, &error);
  std::free(&request);
  return error;
}
int cancel(void* state, int complete) {
  auto& request = *static_cast<Generalized*>(state);
  MPI_Fint error = MPI_SUCCESS;
  request.cancel(&request.extra_state, &complete, &error);
  return error;
}

}  // namespace

VMPI_FORTRAN(mpi_grequest_start,
             (decltype(Generalized::query) query_fn, decltype(Generalized::free) free_fn,
              decltype(Generalized::cancel) cancel_fn, const MPI_Aint* extra_state,
              MPI_Fint* request, MPI_Fint* ierror)) {
  auto* const made = static_cast<Generalized*>(std::malloc(sizeof(Generalized)));
  if (made == nullptr) {
    *ierror = MPI_ERR_NO_MEM;
    return;
  }
  *made = {query_fn, free_fn, cancel_fn, *extra_state};
  MPI_Request handle = MPI_REQUEST_NULL;
  *ierror = PMPI_Grequest_start(query, free_request, cancel, made, &handle);
  if (*ierror == MPI_SUCCESS)
    *request = number_of_handle(handle);
  else
    std::free(made);
}
