// SPDX-License-Identifier: BSD-2-Clause
// A message that takes more than one step. Each side that must be asked about it later gives its
// number to the other; the table's generations tell a stale or invented number from a living one.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/handle.hpp"

namespace vmpi {

struct Transfer {
  enum class Step : std::uint8_t {
    kToBeMatched,  ///< sent whole; kMatched ends it
    kToBePulled,   ///< kPull asks for the payload
    kToBeTaken,    ///< kTaken ends it
    kPulling,      ///< kData brings the payload
    kInvited,      ///< a receive: kWritten ends it
    kWriting,      ///< RDMA WRITEs are under way
    kReading,      ///< RDMA READs are under way
    kStreaming,    ///< pieces are sent
    kStreamed,     ///< pieces come; kStreamed ends it
  };

  std::uint32_t handle = 0;
  Step step = Step::kToBeMatched;
  std::uint32_t rank = 0;  ///< of the peer, in the world
  Request* request = nullptr;
  ibv_mr* mr = nullptr;
  bool is_revoked = false;     ///< of kInvited: the peer was asked to forget it
  bool is_taken_told = false;  ///< of kStreaming: the receiver may read as well, and tells
  bool is_rest = false;        ///< of kWriting: what is left of a stream
  bool is_mr_kept = false;     ///< it belongs to memory of MPI_Alloc_mem
  void* temporary = nullptr;   ///< the packed form (malloc)
  unsigned char* local = nullptr;
  std::uint64_t address = 0;  ///< at the sender
  std::uint64_t bytes = 0;    ///< to be read
  std::uint64_t posted = 0;   ///< of these
  std::uint32_t reads = 0;    ///< under way
  std::uint32_t rkey = 0;
  std::uint32_t peer_id = 0;
  std::int64_t began_at = 0;  ///< ns: of a message to a receive that has invited it
  std::int64_t moved_at = 0;  ///< ns: of kStreamed, when a piece came last
  bool has_ended = false;     ///< of kInvited: the word that it was written has overtaken kStream
  Transfer* next = nullptr;
};

using TransferTable = HandleTable<HandleKind::kMessage, Transfer>;
extern TransferTable transfers;

/// Null: no such transfer, or none of this peer in this step.
[[nodiscard]] Transfer* find_transfer(std::uint32_t id, std::uint32_t rank,
                                      Transfer::Step step) noexcept;
void release_transfer(Transfer& transfer) noexcept;

/// By whom the data is read, or written, when it is not by the processor.
enum class Exposure : std::uint8_t { kRead, kReadInto, kWritten };
/// Registers the request's data, packed if it does not lie in a row. False: it cannot be now.
[[nodiscard]] bool expose(Transfer& transfer, std::uint64_t bytes, Exposure exposure) noexcept;

/// Registered memory of MPI_Alloc_mem that contains this; null: it is none (mapped_memory.cpp).
[[nodiscard]] ibv_mr* mr_of_mapped(void* memory, std::uint64_t bytes) noexcept;
void release_mapped() noexcept;

}  // namespace vmpi
