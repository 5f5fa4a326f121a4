// SPDX-License-Identifier: BSD-2-Clause
// Many requests (MPI 5.0 section 3.7.5).
#include <initializer_list>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/api/request_list.hpp"

namespace {

using vmpi::BigGuard;
using vmpi::Request;

struct List {
  const char* function;
  int count;
  MPI_Request* requests;
  const char* name_of_count = "count";
};

enum class Found { kNoneActive, kNoneComplete, kOne };

/// The first complete one. Its place is in `index`.
Found find_complete(const List& list, int& index) noexcept {
  bool is_any_active = false;
  for (int i = 0; i < list.count; ++i) {
    const Request* const request = vmpi::active_request(list.requests[i]);
    if (request == nullptr) continue;
    is_any_active = true;
    if (!request->is_complete) continue;
    index = i;
    return Found::kOne;
  }
  return is_any_active ? Found::kNoneComplete : Found::kNoneActive;
}

bool is_any_complete_or_none_active(void* list) noexcept {
  int index = 0;
  return find_complete(*static_cast<List*>(list), index) != Found::kNoneComplete;
}

bool are_all_complete(const List& list) noexcept {
  for (int i = 0; i < list.count; ++i) {
    const Request* const request = vmpi::active_request(list.requests[i]);
    if (request != nullptr && !request->is_complete) return false;
  }
  return true;
}

int retire_any(const List& list, int* index, MPI_Status* status) noexcept {
  int at = 0;
  if (find_complete(list, at) != Found::kOne) {
    *index = MPI_UNDEFINED;
    vmpi::write_empty_status(status);
    return MPI_SUCCESS;
  }
  *index = at;
  return vmpi::retire_and_raise(*vmpi::active_request(list.requests[at]), &list.requests[at],
                                status, list.function);
}

/// Ends one of several: its error goes to its status, and is raised once for all.
struct Errors {
  bool is_any = false;

  void retire(Request& request, MPI_Request* handle, MPI_Status* status) noexcept {
    const int error = vmpi::retire(request, handle, status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    if (error == MPI_SUCCESS) return;
    is_any = true;
    first = first == MPI_SUCCESS ? error : first;
  }
  [[nodiscard]] int raise(vmpi::Comm* comm, const List& list) const noexcept {
    if (!is_any) return MPI_SUCCESS;
    return vmpi::raise(comm, MPI_ERR_IN_STATUS, list.function, "one of %d requests failed: %s",
                       list.count, vmpi::text_of(first));
  }
  int first = MPI_SUCCESS;
};

/// The communicator whose error handler hears of the list's errors.
vmpi::Comm* comm_of(const List& list) noexcept {
  for (int i = 0; i < list.count; ++i) {
    const Request* const request = vmpi::active_request(list.requests[i]);
    if (request != nullptr && request->error != MPI_SUCCESS && request->comm != nullptr)
      return request->comm;
  }
  return nullptr;
}

MPI_Status* status_at(MPI_Status* statuses, int index) noexcept {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[index];
}

/// Those that are active still.
int retire_rest(const List& list, MPI_Status* statuses) noexcept {
  Errors errors;
  vmpi::Comm* const comm = comm_of(list);
  if (comm != nullptr) retain(*comm);
  for (int i = 0; i < list.count; ++i)
    if (Request* const request = vmpi::active_request(list.requests[i]); request != nullptr)
      errors.retire(*request, &list.requests[i], status_at(statuses, i));
  const int error = errors.raise(comm, list);
  if (comm != nullptr) release(*comm);
  return error;
}

int retire_all(const List& list, MPI_Status* statuses) noexcept {
  Errors errors;
  vmpi::Comm* const comm = comm_of(list);
  if (comm != nullptr) retain(*comm);
  for (int i = 0; i < list.count; ++i) {
    MPI_Status* const status = status_at(statuses, i);
    Request* const request = vmpi::active_request(list.requests[i]);
    if (request != nullptr) {
      errors.retire(*request, &list.requests[i], status);
    } else {
      vmpi::write_empty_status(status);
      if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
    }
  }
  const int error = errors.raise(comm, list);
  if (comm != nullptr) release(*comm);
  return error;
}

int retire_some(const List& list, int* count, int* indices, MPI_Status* statuses) noexcept {
  int index = 0;
  if (find_complete(list, index) == Found::kNoneActive) {
    *count = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  Errors errors;
  vmpi::Comm* const comm = comm_of(list);
  if (comm != nullptr) retain(*comm);
  int retired = 0;
  for (int i = 0; i < list.count; ++i) {
    Request* const request = vmpi::active_request(list.requests[i]);
    if (request == nullptr || !request->is_complete) continue;
    errors.retire(*request, &list.requests[i], status_at(statuses, retired));
    indices[retired++] = i;
  }
  *count = retired;
  const int error = errors.raise(comm, list);
  if (comm != nullptr) release(*comm);
  return error;
}

/// An argument to write to.
struct Result {
  const void* place;
  const char* name;
};

[[nodiscard]] int check(const List& list, std::initializer_list<Result> results) noexcept {
  const int error =
      vmpi::check_requests(list.function, list.count, list.requests, list.name_of_count);
  if (error != MPI_SUCCESS) return error;
  for (const Result& each : results)
    if (each.place == nullptr)
      return vmpi::raise(nullptr, MPI_ERR_ARG, list.function, "argument `%s` is a null pointer",
                         each.name);
  return MPI_SUCCESS;
}

/// Of MPI_Waitsome and MPI_Testsome.
[[nodiscard]] int check_some(const List& list, const int* count, const int* indices) noexcept {
  return check(list,
               {{count, "outcount"}, {list.count != 0 ? indices : count, "array_of_indices"}});
}

}  // namespace

VMPI_ENTRY(int, MPI_Waitany,
           (int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status)) {
  BigGuard guard;
  List list = {"MPI_Waitany", count, array_of_requests};
  const int error = check(list, {{indx, "indx"}});
  if (error != MPI_SUCCESS) return error;
  vmpi::wait_until(is_any_complete_or_none_active, &list);
  return retire_any(list, indx, status);
}

VMPI_ENTRY(int, MPI_Testany,
           (int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status)) {
  BigGuard guard;
  List list = {"MPI_Testany", count, array_of_requests};
  const int error = check(list, {{indx, "indx"}, {flag, "flag"}});
  if (error != MPI_SUCCESS) return error;
  if (!is_any_complete_or_none_active(&list)) (void)vmpi::progress();
  *flag = is_any_complete_or_none_active(&list) ? 1 : 0;
  if (*flag != 0) return retire_any(list, indx, status);
  *indx = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Waitall,
           (int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])) {
  BigGuard guard;
  const List list = {"MPI_Waitall", count, array_of_requests};
  const int error = check(list, {});
  if (error != MPI_SUCCESS) return error;
  // One after the other: each is looked at until it is complete, and no longer. Those that failed
  // are left for the end, when the error handler of one of them hears of all.
  bool is_any_wrong = false;
  for (int i = 0; i < count; ++i) {
    MPI_Status* const status = status_at(array_of_statuses, i);
    Request* const request = vmpi::active_request(array_of_requests[i]);
    int wrong = MPI_SUCCESS;
    if (request == nullptr)
      vmpi::write_empty_status(status);
    else if ((request->is_complete ? request->error : vmpi::wait_for(*request)) != MPI_SUCCESS ||
             request->kind == Request::Kind::kGeneralized)
      is_any_wrong = true;
    else
      wrong = vmpi::retire(*request, &array_of_requests[i], status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = wrong;
  }
  return is_any_wrong ? retire_rest(list, array_of_statuses) : MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Testall,
           (int count, MPI_Request array_of_requests[], int* flag,
            MPI_Status array_of_statuses[])) {
  BigGuard guard;
  const List list = {"MPI_Testall", count, array_of_requests};
  const int error = check(list, {{flag, "flag"}});
  if (error != MPI_SUCCESS) return error;
  if (!are_all_complete(list)) (void)vmpi::progress();
  *flag = are_all_complete(list) ? 1 : 0;
  return *flag != 0 ? retire_all(list, array_of_statuses) : MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Waitsome,
           (int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
            MPI_Status array_of_statuses[])) {
  BigGuard guard;
  List list = {"MPI_Waitsome", incount, array_of_requests, "incount"};
  const int error = check_some(list, outcount, array_of_indices);
  if (error != MPI_SUCCESS) return error;
  vmpi::wait_until(is_any_complete_or_none_active, &list);
  return retire_some(list, outcount, array_of_indices, array_of_statuses);
}

VMPI_ENTRY(int, MPI_Testsome,
           (int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
            MPI_Status array_of_statuses[])) {
  BigGuard guard;
  List list = {"MPI_Testsome", incount, array_of_requests, "incount"};
  const int error = check_some(list, outcount, array_of_indices);
  if (error != MPI_SUCCESS) return error;
  (void)vmpi::progress();
  return retire_some(list, outcount, array_of_indices, array_of_statuses);
}
