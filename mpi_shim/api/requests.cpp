// SPDX-License-Identifier: BSD-2-Clause
// One request (MPI 5.0 sections 3.7.3, 3.7.6, 3.8.4).
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/api/request_list.hpp"
#include "mpi_shim/core/status.hpp"

namespace vmpi {

int check_requests(const char* function, int count, const MPI_Request* requests,
                   const char* name_of_count) noexcept {
  if (count < 0)
    return raise(nullptr, MPI_ERR_ARG, function, "argument `%s` is %d", name_of_count, count);
  if (requests == nullptr && count != 0)
    return raise(nullptr, MPI_ERR_ARG, function, "argument `array_of_requests` is a null pointer");
  for (int i = 0; i < count; ++i)
    if (requests[i] != MPI_REQUEST_NULL && find_request(requests[i]) == nullptr)
      return raise(nullptr, MPI_ERR_REQUEST, function,
                   "`array_of_requests[%d]` is no request (0x%llx): it was freed, or never made", i,
                   static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(requests[i])));
  return MPI_SUCCESS;
}

int retire_and_raise(Request& request, MPI_Request* handle, MPI_Status* status,
                     const char* function) noexcept {
  if (request.error == MPI_SUCCESS && request.kind != Request::Kind::kGeneralized) [[likely]]
    return retire(request, handle, status);
  // What is said of it, and by whose error handler, outlives it.
  const Request copy = request;
  if (copy.comm != nullptr) retain(*copy.comm);
  if (copy.type != nullptr) retain(*copy.type);
  int error = retire(request, handle, status);
  error = raise_for(copy, error, function);
  if (copy.type != nullptr) release(*copy.type);
  if (copy.comm != nullptr) release(*copy.comm);
  return error;
}

}  // namespace vmpi

using vmpi::BigGuard;
using vmpi::Request;

VMPI_ENTRY(int, MPI_Wait, (MPI_Request * request, MPI_Status* status)) {
  BigGuard guard;
  const int error = vmpi::check_requests("MPI_Wait", 1, request);
  if (error != MPI_SUCCESS) return error;
  Request* const waited = vmpi::active_request(*request);
  if (waited == nullptr) {
    vmpi::write_empty_status(status);
    return MPI_SUCCESS;
  }
  (void)vmpi::wait_for(*waited);
  return vmpi::retire_and_raise(*waited, request, status, "MPI_Wait");
}

VMPI_ENTRY(int, MPI_Test, (MPI_Request * request, int* flag, MPI_Status* status)) {
  BigGuard guard;
  const int error = vmpi::check_requests("MPI_Test", 1, request);
  if (error != MPI_SUCCESS) return error;
  if (flag == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Test", "argument `flag` is a null pointer");
  Request* const tested = vmpi::active_request(*request);
  if (tested == nullptr) {
    *flag = 1;
    vmpi::write_empty_status(status);
    return MPI_SUCCESS;
  }
  if (!tested->is_complete) (void)vmpi::progress();
  *flag = tested->is_complete ? 1 : 0;
  if (!tested->is_complete) return MPI_SUCCESS;
  return vmpi::retire_and_raise(*tested, request, status, "MPI_Test");
}

VMPI_ENTRY(int, MPI_Request_free, (MPI_Request * request)) {
  BigGuard guard;
  const int error = vmpi::check_requests("MPI_Request_free", 1, request);
  if (error != MPI_SUCCESS) return error;
  if (*request == MPI_REQUEST_NULL)
    return vmpi::raise(nullptr, MPI_ERR_REQUEST, "MPI_Request_free",
                       "argument `request` is MPI_REQUEST_NULL");
  Request* const freed = vmpi::find_request(*request);
  // Without a handle nobody starts it again.
  freed->is_persistent = false;
  if (freed->is_active && !freed->is_complete) {
    freed->is_freed = true;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  if (freed->kind == Request::Kind::kGeneralized)
    return vmpi::retire(*freed, request, MPI_STATUS_IGNORE);
  vmpi::release_request(*freed);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Cancel, (MPI_Request * request)) {
  BigGuard guard;
  const int error = vmpi::check_requests("MPI_Cancel", 1, request);
  if (error != MPI_SUCCESS) return error;
  Request* const cancelled = vmpi::active_request(*request);
  if (cancelled == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_REQUEST, "MPI_Cancel",
                       "argument `request` is not active: nothing can be cancelled");
  if (cancelled->kind != Request::Kind::kGeneralized) {
    (void)vmpi::cancel(*cancelled);
    return MPI_SUCCESS;
  }
  const auto said = *static_cast<vmpi::Generalized*>(cancelled->protocol);
  if (said.cancel == nullptr) return MPI_SUCCESS;
  const int is_complete = cancelled->is_complete ? 1 : 0;
  vmpi::big_lock.unlock();
  const int answer = said.cancel(said.state, is_complete);
  vmpi::big_lock.lock();
  return answer;
}

VMPI_ENTRY(int, MPI_Request_get_status, (MPI_Request request, int* flag, MPI_Status* status)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Request_get_status";
  const int error = vmpi::check_requests(kName, 1, &request);
  if (error != MPI_SUCCESS) return error;
  if (flag == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `flag` is a null pointer");
  Request* const looked_at = vmpi::active_request(request);
  if (looked_at == nullptr) {
    *flag = 1;
    vmpi::write_empty_status(status);
    return MPI_SUCCESS;
  }
  if (!looked_at->is_complete) (void)vmpi::progress();
  *flag = looked_at->is_complete ? 1 : 0;
  if (!looked_at->is_complete) return MPI_SUCCESS;
  if (looked_at->kind != Request::Kind::kGeneralized) {
    vmpi::write_status(*looked_at, status);
    return MPI_SUCCESS;
  }
  const auto said = *static_cast<vmpi::Generalized*>(looked_at->protocol);
  MPI_Status own = {};
  vmpi::big_lock.unlock();
  const int answer = said.query != nullptr ? said.query(said.state, &own) : MPI_SUCCESS;
  vmpi::big_lock.lock();
  if (status != MPI_STATUS_IGNORE) *status = own;
  return answer;
}
