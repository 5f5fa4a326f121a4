// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/temporary.hpp"

#include <new>

namespace vmpi {

bool Bundle::reserve(int count) noexcept {
  const auto bytes = sizeof(Request) * static_cast<std::size_t>(count > 0 ? count : 1);
  requests_ = static_cast<Request*>(std::malloc(bytes));
  return requests_ != nullptr;
}

Request* Bundle::prepare(Comm& comm, int peer, int tag, const void* buffer, std::int64_t count,
                         Datatype& type) noexcept {
  Request* const request = ::new (static_cast<void*>(requests_ + begun_)) Request();
  request->plane = Plane::kCollective;
  request->peer = peer;
  request->tag = tag;
  request->buffer = const_cast<void*>(buffer);
  request->count = count;
  request->type = &type;
  request->comm = &comm;
  return request;
}

void Bundle::send(Comm& comm, int dest, int tag, const void* buffer, std::int64_t count,
                  Datatype& type) noexcept {
  if (error_ != MPI_SUCCESS) return;
  Request* const request = prepare(comm, dest, tag, buffer, count, type);
  error_ = begin_send(*request);
  if (error_ == MPI_SUCCESS) ++begun_;
}

void Bundle::receive(Comm& comm, int source, int tag, void* buffer, std::int64_t count,
                     Datatype& type) noexcept {
  if (error_ != MPI_SUCCESS) return;
  begin_receive(*prepare(comm, source, tag, buffer, count, type));
  ++begun_;
}

int Bundle::finish() noexcept {
  Outcome outcome = {error_};
  bool is_ended = error_ != MPI_SUCCESS;
  for (int i = 0; i < begun_; ++i) {
    if (is_ended && !requests_[i].is_complete) (void)cancel(requests_[i]);
    is_ended = outcome.is_ended_by(wait_for(requests_[i])) || is_ended;
  }
  begun_ = 0;
  return outcome.error;
}

}  // namespace vmpi
