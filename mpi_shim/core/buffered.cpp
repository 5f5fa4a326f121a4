// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/buffered.hpp"

#include <cstdlib>
#include <new>

namespace vmpi {
namespace {

/// Stands in the buffer before the bytes of its message; in the order of addresses.
struct Record {
  Request request;
  Record* next = nullptr;
  std::uint64_t bytes = 0;  ///< with this
};

constexpr std::uint64_t kAlignment = 64;
static_assert(sizeof(Record) + 2 * kAlignment <= MPI_BSEND_OVERHEAD);

void* attached = nullptr;
std::uint64_t attached_bytes = 0;
bool is_attached = false;
Record* first = nullptr;

[[nodiscard]] bool is_automatic() noexcept { return attached == MPI_BUFFER_AUTOMATIC; }

void reclaim() noexcept {
  for (Record** link = &first; *link != nullptr;) {
    Record* const record = *link;
    if (!record->request.is_complete) {
      link = &record->next;
      continue;
    }
    *link = record->next;
    release(*record->request.comm);
    if (is_automatic()) std::free(record);
  }
}

/// The first gap that holds so much; null: there is none.
Record* place(std::uint64_t bytes) noexcept {
  if (is_automatic()) {
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) return nullptr;
    auto* const made = ::new (memory) Record();
    made->next = first;
    first = made;
    return made;
  }
  const auto begin =
      (reinterpret_cast<std::uintptr_t>(attached) + kAlignment - 1) / kAlignment * kAlignment;
  const auto end = reinterpret_cast<std::uintptr_t>(attached) + attached_bytes;
  std::uintptr_t at = begin;
  for (Record** link = &first;; link = &(*link)->next) {
    const std::uintptr_t until = *link != nullptr ? reinterpret_cast<std::uintptr_t>(*link) : end;
    if (until >= at && until - at >= bytes) {
      auto* const made = ::new (reinterpret_cast<void*>(at)) Record();
      made->next = *link;
      *link = made;
      return made;
    }
    if (*link == nullptr) return nullptr;
    at = until + (*link)->bytes;
  }
}

}  // namespace

int attach_buffer(void* buffer, std::uint64_t bytes) noexcept {
  if (is_attached) return MPI_ERR_BUFFER;
  attached = buffer;
  attached_bytes = bytes;
  is_attached = true;
  return MPI_SUCCESS;
}

void flush_buffer() noexcept {
  // No record is held on to: another thread that sends frees those that are through.
  wait_until(
      [](void*) noexcept {
        reclaim();
        return first == nullptr;
      },
      nullptr);
}

int detach_buffer(void** buffer, std::uint64_t* bytes) noexcept {
  if (!is_attached) return MPI_ERR_BUFFER;
  flush_buffer();
  *buffer = attached;
  *bytes = attached_bytes;
  is_attached = false;
  return MPI_SUCCESS;
}

std::uint64_t size_of_buffer() noexcept { return is_attached ? attached_bytes : 0; }

int send_buffered(const Request& asked) noexcept {
  if (!is_attached) return MPI_ERR_BUFFER;
  (void)progress();
  reclaim();
  const auto payload = static_cast<std::uint64_t>(asked.count * asked.type->size);
  const std::uint64_t bytes = (sizeof(Record) + payload + kAlignment - 1) / kAlignment * kAlignment;
  Record* const record = place(bytes);
  if (record == nullptr) return is_automatic() ? MPI_ERR_NO_MEM : MPI_ERR_BUFFER;
  record->bytes = bytes;
  Request& request = record->request;
  request.buffer = record + 1;
  if (payload != 0) (void)pack(*asked.type, asked.count, asked.buffer, 0, record + 1, payload);
  request.count = static_cast<std::int64_t>(payload);
  request.type = find_datatype(MPI_BYTE);
  request.comm = asked.comm;
  request.peer = asked.peer;
  request.tag = asked.tag;
  retain(*request.comm);
  const int error = begin_send(request);
  if (error != MPI_SUCCESS) reclaim();
  return error;
}

}  // namespace vmpi
