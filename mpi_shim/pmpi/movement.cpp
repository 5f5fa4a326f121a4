// SPDX-License-Identifier: BSD-2-Clause
// Collectives that move data: to the engine they are bytes, of which all ranks name the same number.
#include <verbatim/coll.h>

#include <cerrno>

#include "mpi_shim/pmpi/call.hpp"
#include "mpi_shim/pmpi/taken.hpp"

namespace vmpi::pmpi {
namespace {

/// An allgather or an all-to-all, once its arguments are understood.
struct Exchange {
  Communicator& communicator;
  Collective collective;
  const void* send;
  Count send_count;  ///< of all that is sent; 0 with `is_in_place`
  Handle send_type;
  bool is_send_plain;
  bool is_in_place;
  void* receive;
  Count receive_count;  ///< of all that is received
  Handle receive_type;
  bool is_receive_plain;
  std::uint64_t bytes_each;  ///< from each rank, or to each
};

[[nodiscard]] std::uint64_t bytes_received(const Exchange& exchange) noexcept {
  return exchange.bytes_each * static_cast<std::uint64_t>(exchange.communicator.size);
}
[[nodiscard]] std::uint64_t bytes_sent(const Exchange& exchange) noexcept {
  return exchange.collective == Collective::kAllgather ? exchange.bytes_each
                                                       : bytes_received(exchange);
}

[[nodiscard]] int exchange_bytes(const Exchange& exchange, const void* send,
                                 void* receive) noexcept {
  const auto function =
      exchange.collective == Collective::kAllgather ? vbt_coll_allgather : vbt_coll_alltoall;
  return function(exchange.communicator.team, send, receive, exchange.bytes_each, VBT_COLL_BYTE);
}

/// Through copies, of those buffers whose type is derived. An error of the MPI has been through its
/// error handler; what this rank cannot do alone ends the job (ENOMEM).
[[gnu::cold, gnu::noinline]] int exchange_packed(const Exchange& exchange, int& error) noexcept {
  const Communicator& communicator = exchange.communicator;
  Packed out;
  Packed in;
  error = ENOMEM;
  const void* send = exchange.send;
  void* receive = exchange.receive;
  if (exchange.is_in_place) {
    send = VBT_COLL_IN_PLACE;
  } else if (!exchange.is_send_plain) {
    if (!out.reserve(bytes_sent(exchange))) return kSuccess;
    send = out.memory();
    if (const int failed =
            out.pack(communicator, exchange.send, exchange.send_count, exchange.send_type);
        failed != kSuccess)
      return failed;
  }
  if (!exchange.is_receive_plain) {
    if (!in.reserve(bytes_received(exchange))) return kSuccess;
    receive = in.memory();
    // What is received replaces what lies there, or stands beside what lies there already.
    if (exchange.is_in_place) {
      if (const int failed = in.pack(communicator, exchange.receive, exchange.receive_count,
                                     exchange.receive_type);
          failed != kSuccess)
        return failed;
    }
  }
  error = exchange_bytes(exchange, send, receive);
  if (error != 0 || exchange.is_receive_plain) return kSuccess;
  return in.unpack(communicator, exchange.receive, exchange.receive_count, exchange.receive_type);
}

[[nodiscard]] bool take_exchange(Communicator& communicator, Collective collective,
                                 const void* send, Count send_count, Handle send_type,
                                 void* receive, Count receive_count, Handle receive_type,
                                 int& result) noexcept {
  const void* const in_place = library().in_place;
  send_type = handle_of(send_type);
  receive_type = handle_of(receive_type);
  const Elements received = elements_of(receive_count, receive_type);
  bool is_in_place = send == in_place;
  const Elements sent = is_in_place ? received : elements_of(send_count, send_type);
  if (!received.is_good || !sent.is_good || receive == in_place)
    return leave(communicator, collective, Reason::kArguments);
  const auto size = static_cast<std::uint64_t>(communicator.size);
  const std::uint64_t each = received.bytes;
  if (!is_taken(communicator, collective, each > kMostBytes ? each : each * size)) return false;
  // An address of 0 is that of absolute ones, which derived types have.
  if (each != 0 && ((receive == nullptr && received.is_plain) ||
                    (send == nullptr && !is_in_place && sent.is_plain)))
    return leave(communicator, collective, Reason::kArguments);
  if (sent.bytes != each) {
    result = raise(communicator, collective, library().error_truncate,
                   "what is sent has another length than what is received");
    return true;
  }
  // One buffer for both, which MPI does not allow and programs have.
  const std::uint64_t own_at = collective == Collective::kAllgather
                                   ? each * static_cast<std::uint64_t>(communicator.rank)
                                   : 0;
  if (!is_in_place && sent.is_plain && received.is_plain && each != 0 &&
      send == static_cast<const unsigned char*>(receive) + own_at)
    is_in_place = true;
  // What has no bytes may be of more elements than can be counted.
  const Count blocks = each != 0 ? communicator.size : 0;
  const Count sent_blocks = collective == Collective::kAllgather && each != 0 ? 1 : blocks;
  const Exchange exchange = {communicator,
                             collective,
                             send,
                             is_in_place ? 0 : send_count * sent_blocks,
                             send_type,
                             sent.is_plain,
                             is_in_place,
                             receive,
                             receive_count * blocks,
                             receive_type,
                             received.is_plain,
                             each};
  const std::uint64_t bytes = bytes_sent(exchange);
  if (received.is_plain && (is_in_place || sent.is_plain)) [[likely]] {
    const int error = exchange_bytes(exchange, is_in_place ? VBT_COLL_IN_PLACE : send, receive);
    return end(communicator, collective, bytes, error, result);
  }
  int error = 0;
  const int failed = exchange_packed(exchange, error);
  (void)end(communicator, collective, bytes, failed == kSuccess ? error : 0, result);
  if (failed != kSuccess) result = failed;
  return true;
}

[[gnu::cold, gnu::noinline]] int bcast_packed(Communicator& communicator, void* buffer, Count count,
                                              Handle type, int root, std::uint64_t bytes,
                                              int& error) noexcept {
  Packed copy;
  error = ENOMEM;
  if (!copy.reserve(bytes)) return kSuccess;
  if (root == communicator.rank) {
    if (const int failed = copy.pack(communicator, buffer, count, type); failed != kSuccess)
      return failed;
  }
  error = vbt_coll_bcast(communicator.team, copy.memory(), bytes, VBT_COLL_BYTE,
                         static_cast<std::uint32_t>(root));
  if (error != 0 || root == communicator.rank) return kSuccess;
  return copy.unpack(communicator, buffer, count, type);
}

}  // namespace

bool take_barrier(Handle communicator, int& result) noexcept {
  constexpr Collective kThis = Collective::kBarrier;
  Communicator* const comm = find_communicator(communicator);
  if (comm == nullptr || !is_taken(*comm, kThis, 0)) return false;
  return end(*comm, kThis, 0, vbt_coll_barrier(comm->team), result);
}

bool take_bcast(void* buffer, Count count, Handle type, int root, Handle communicator,
                int& result) noexcept {
  constexpr Collective kThis = Collective::kBcast;
  Communicator* const comm = find_communicator(communicator);
  if (comm == nullptr) return false;
  type = handle_of(type);
  const Elements elements = elements_of(count, type);
  if (!elements.is_good || root < 0 || root >= comm->size || buffer == library().in_place)
    return leave(*comm, kThis, Reason::kArguments);
  if (!is_taken(*comm, kThis, elements.bytes)) return false;
  if (!elements.is_plain) [[unlikely]] {
    int error = 0;
    const int failed = bcast_packed(*comm, buffer, count, type, root, elements.bytes, error);
    (void)end(*comm, kThis, elements.bytes, failed == kSuccess ? error : 0, result);
    if (failed != kSuccess) result = failed;
    return true;
  }
  if (buffer == nullptr && elements.bytes != 0) return leave(*comm, kThis, Reason::kArguments);
  const int error = vbt_coll_bcast(comm->team, buffer, elements.bytes, VBT_COLL_BYTE,
                                   static_cast<std::uint32_t>(root));
  return end(*comm, kThis, elements.bytes, error, result);
}

bool take_allgather(const void* send, Count send_count, Handle send_type, void* receive,
                    Count receive_count, Handle receive_type, Handle communicator,
                    int& result) noexcept {
  Communicator* const comm = find_communicator(communicator);
  return comm != nullptr && take_exchange(*comm, Collective::kAllgather, send, send_count,
                                          send_type, receive, receive_count, receive_type, result);
}

bool take_alltoall(const void* send, Count send_count, Handle send_type, void* receive,
                   Count receive_count, Handle receive_type, Handle communicator,
                   int& result) noexcept {
  Communicator* const comm = find_communicator(communicator);
  return comm != nullptr && take_exchange(*comm, Collective::kAlltoall, send, send_count, send_type,
                                          receive, receive_count, receive_type, result);
}

}  // namespace vmpi::pmpi
