// SPDX-License-Identifier: BSD-2-Clause
// How messages travel.
//
//   up to 8 KiB, with a credit     header and payload in one SEND (kEager); a synchronous one is
//                                  answered when it is matched
//   up to 8 KiB, without           the header alone (kEnvelope); whoever matches it asks for the
//                                  payload (kPull), which then goes straight to the receive (kData)
//   longer                         the header with address and key (kRendezvous); whoever matches it
//                                  reads the sender's buffer by RDMA and says so (kTaken)
//
// A receive of a long message that is posted first lets the sender write to it (invitations.hpp).
// Between processes of one host the messages themselves go by rings in mapped memory (rings.hpp),
// short ones past most of this file (at_once.hpp), long ones in pieces where that is faster
// (streams.hpp).
//
// A sender may have 64 payloads unmatched at a receiver. So the receiver's memory is bounded, its
// buffers are never all held, and one who computes stops nobody but those who need its answer.
#include "mpi_shim/core/engine.hpp"

#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "mpi_shim/core/at_once.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/invitations.hpp"
#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/messages.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/pmi_wire.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/sharing.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/sync/polls.hpp"

namespace vmpi {
namespace {

constexpr int kAtOnce = 16;
std::uint32_t polls_in_vain = 0;  ///< in a row
std::uint32_t polls_before_look = 0;
constexpr std::uint32_t kPollsBeforeLook = 64;
std::uint32_t polls_of_rings = 0;

void take_received(const ibv_wc& wc, std::uint32_t index) noexcept {
  if (wc.status != IBV_WC_SUCCESS) return;
  Peer* const peer = peer_of_qp(wc.qp_num);
  if (peer == nullptr) return;
  if (!peer->is_ready) be_ready(*peer);
  take_message(*peer, fabric.receive_buffer(index), wc.byte_len);
  if (peer->in == nullptr && !peer->is_dead) consider_ring(*peer);
}

void take_hello(const ibv_wc& wc, std::uint32_t index) noexcept {
  constexpr std::uint32_t kRoutingHeader = 40;
  if (wc.status == IBV_WC_SUCCESS && wc.byte_len >= kRoutingHeader + sizeof(Hello)) {
    Hello hello;
    std::memcpy(&hello, fabric.hello_buffer(index) + kRoutingHeader, sizeof hello);
    hear_hello(hello, wc.src_qp);
  }
  if (wc.status == IBV_WC_SUCCESS) fabric.post_hello(index);
}

void take_sent(const ibv_wc& wc, const WorkId& work) noexcept {
  if (work.kind == WorkId::Kind::kBounce) (void)fabric.free_bounces.push_back(work.id);
  Peer* const peer = known_peer(work.rank);
  if (peer == nullptr) return;
  peer->in_queue -= std::min<std::uint32_t>(peer->in_queue, work.covers);
  if (wc.status != IBV_WC_SUCCESS) {
    suspect(*peer, ibv_wc_status_str(wc.status));
    return;
  }
  if (work.kind != WorkId::Kind::kRead) return;
  Transfer* const transfer = transfers.find(work.id);
  if (transfer == nullptr || --transfer->reads != 0 || transfer->posted != transfer->bytes) return;
  if (transfer->step == Transfer::Step::kReading) {
    finish_read(*peer, *transfer);
  } else {
    if (transfer->is_rest) {
      rest_is_written(*peer, *transfer);
      return;
    }
    Request& send = *transfer->request;
    if (transfer->mr != nullptr && !transfer->is_mr_kept && transfer->began_at != 0)
      pace.written(transfer->bytes, now_ns() - transfer->began_at);
    release_transfer(*transfer);
    complete(send, MPI_SUCCESS);
  }
}

/// Waits for a completion event, for a while: peers are asked and looked at in between.
void sleep_for_events() noexcept {
  constexpr int kMilliseconds = 10;
  if (ibv_req_notify_cq(fabric.cq, 0) != 0 || progress()) return;
  big_lock.unlock();
  pollfd asked[2] = {{fabric.channel->fd, POLLIN, 0}, {fabric.context->async_fd, POLLIN, 0}};
  (void)::poll(asked, 2, kMilliseconds);
  big_lock.lock();
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(fabric.channel, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
}

std::uint32_t steps_in_vain = 0;  ///< in a row, of a call that waits

/// Whoever shares our processor has his turn. Who waits long leaves it to the others for a while: an
/// eighth of what he has waited, so that a message which comes then is late by no more than that.
void share_processor() noexcept {
  // About a microsecond: longer than an answer takes of who has a processor.
  constexpr std::uint32_t kBeforeYield = 16;
  constexpr std::uint32_t kBetweenClocks = 64;
  constexpr std::int64_t kLongNs = 400'000;
  constexpr std::int64_t kMostNs = 200'000;
  static std::int64_t since = 0;
  static bool waits_long = false;
  if (++steps_in_vain < kBeforeYield) return;
  if (steps_in_vain == kBeforeYield) {
    since = now_ns();
    waits_long = false;
  }
  if (!waits_long) {
    give_processor_away();
    waits_long = steps_in_vain % kBetweenClocks == 0 && now_ns() - since >= kLongNs;
    return;
  }
  const timespec rest = {0, std::min((now_ns() - since) / 8, kMostNs)};
  big_lock.unlock();
  ::nanosleep(&rest, nullptr);
  big_lock.lock();
}

void idle() noexcept {
  constexpr std::uint32_t kBeforeSleep = 256;
  if (!fabric.is_open()) {
    ::sched_yield();
  } else if (fabric.channel != nullptr && polls_in_vain > kBeforeSleep) {
    sleep_for_events();
  } else if (waiting == Waiting::kShare) {
    share_processor();
  }
  if (!big_lock.is_needed()) return;
  // Other threads wait for the lock, and a mutex is not fair.
  big_lock.unlock();
  ::sched_yield();
  big_lock.lock();
}

void step() noexcept {
  constexpr std::uint32_t kMovesBetween = 1024;
  static std::uint32_t moves = 0;
  const bool has_moved = progress();
  if (wait_in_vain != nullptr && (!has_moved || ++moves % kMovesBetween == 0)) wait_in_vain();
  if (has_moved)
    steps_in_vain = 0;
  else
    idle();
}

void set_up(Request& request, Request::Kind kind) noexcept {
  request.kind = kind;
  request.is_active = true;
  request.is_complete = false;
  request.is_cancelled = false;
  request.error = MPI_SUCCESS;
  request.bytes = 0;
  request.sequence = 0;
  request.protocol = nullptr;
  request.next = request.previous = nullptr;
}

/// To this process itself: no verbs. Short ones are copied as a peer would keep them.
int send_to_self(Request& send) noexcept {
  Unexpected message{};
  message.envelope = {context_of(*send.comm, send.plane), send.comm->rank(), send.tag};
  message.world_rank = static_cast<std::uint32_t>(world.rank) & 0xffffffu;
  message.kind = static_cast<unsigned>(MessageKind::kEager);
  message.length = static_cast<std::uint64_t>(send.count * send.type->size);
  message.place = reinterpret_cast<std::uintptr_t>(&send);
  message.is_own = 1;
  if (Request* const receive = matching.take_receive(message.envelope); receive != nullptr) {
    ++own_waiting;
    consume(*receive, message);
    return MPI_SUCCESS;
  }
  const bool is_copied =
      send.mode != SendMode::kSynchronous && message.length <= kEagerBytes && own_credits != 0;
  if (is_copied) {
    message.is_own = 0;
    message.place = 0;
    if (message.length != 0) {
      void* const copy = std::malloc(message.length);
      if (copy == nullptr) return MPI_ERR_NO_MEM;
      (void)pack(*send.type, send.count, send.buffer, 0, copy, message.length);
      message.place = reinterpret_cast<std::uintptr_t>(copy);
    }
  }
  if (!matching.keep(message)) {
    if (is_copied) std::free(reinterpret_cast<void*>(message.place));
    return MPI_ERR_NO_MEM;
  }
  if (is_copied) {
    --own_credits;
    complete(send, MPI_SUCCESS);
  } else {
    ++own_waiting;
  }
  return MPI_SUCCESS;
}

/// Ranks of this host, by the launcher's word; without one it might be all.
long ranks_here() noexcept {
  if (world.is_of_teams) return world.here;
  for (const char* name : {"MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    const char* const text = std::getenv(name);
    long number = 0;
    if (text != nullptr && parse_number(text, 1, world.size, number)) return number;
  }
  return world.size;
}

/// Processors that the ranks of this host may run on. Ranks that are bound to one each are taken to
/// be bound to different ones.
long processors_here() noexcept {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  const int allowed = CPU_COUNT(&mask);
  return allowed == 1 ? ::sysconf(_SC_NPROCESSORS_ONLN) : allowed;
}

Waiting wish() noexcept {
  static constexpr std::string_view kWords[] = {"share", "spin", "sleep"};
  const long ranks = ranks_here();
  const long processors = processors_here();
  // Of many that share a processor each gets its turn only after all others have looked in vain.
  const auto by_default = ranks <= processors       ? Waiting::kSpin
                          : ranks <= 2 * processors ? Waiting::kShare
                                                    : Waiting::kSleep;
  return static_cast<Waiting>(
      verbatim::environment_choice("VERBATIM_WAIT", kWords, static_cast<std::size_t>(by_default)));
}

/// It has all that was sent to it. If not, it is asked to say so.
bool has_taken_all(Peer& peer) noexcept {
  if (peer.is_dead || (peer.in_queue == 0 && !peer.has_work())) return true;
  flush_queue(peer);
  return false;
}

/// Nothing of ours is under way.
bool is_drained() noexcept {
  bool is_so = open_sends == own_waiting && transfers.live() == invited;
  each_peer([&is_so](Peer& peer) noexcept { is_so = has_taken_all(peer) && is_so; });
  return is_so;
}

bool is_anybody_lost() noexcept {
  bool found = false;
  each_peer([&found](Peer& peer) noexcept {
    found = found || peer.is_dead || peer.is_lost_to_other || peer.has_lost_us;
  });
  return found;
}

}  // namespace

HandleTable<HandleKind::kMessage, Message> messages;
bool (*advance_schedules)() noexcept = nullptr;
void (*wait_in_vain)() noexcept = nullptr;
void (*drop_host_teams)() noexcept = nullptr;

namespace {

/// Completions, and messages that come by queue pairs.
bool poll_queue() noexcept {
  ibv_wc wcs[kAtOnce];
  std::uint32_t drained[kAtOnce];
  std::uint32_t drained_count = 0;
  const int found = ibv_poll_cq(fabric.cq, kAtOnce, wcs);
  if (found < 0) fabric.is_failed = true;
  for (int i = 0; i < found; ++i) {
    const WorkId work = WorkId::from(wcs[i].wr_id);
    switch (work.kind) {
      case WorkId::Kind::kReceive:
        take_received(wcs[i], work.id);
        drained[drained_count++] = work.id;
        break;
      case WorkId::Kind::kHello:
        take_hello(wcs[i], work.id);
        break;
      case WorkId::Kind::kHelloSent:
        break;
      case WorkId::Kind::kPlain:
      case WorkId::Kind::kBounce:
      case WorkId::Kind::kRead:
        take_sent(wcs[i], work);
        break;
    }
  }
  if (drained_count != 0 && !fabric.is_failed) fabric.post_receives(drained, drained_count);
  return found > 0;
}

}  // namespace

bool progress() noexcept { return progress_beside(nullptr); }

bool progress_beside(const InRing* ring) noexcept {
  constexpr std::uint32_t kRingsAlone = 16;
  // Of messages to this process itself too.
  const bool has_advanced = advance_schedules != nullptr && advance_schedules();
  if (!fabric.is_open()) return has_advanced;
  bool has_moved = poll_rings(ring);
  // While rings bring something the queue, of which little is expected, has a turn now and then.
  if (!has_moved || transfers.live() != invited || ++polls_of_rings % kRingsAlone == 0)
    has_moved = poll_queue() || has_moved;
  if (is_anybody_busy()) has_moved = drain_busy() || has_moved;
  has_moved = has_moved || has_advanced;
  if (is_anybody_asked()) has_moved = ask_again() || has_moved;
  if (has_moved)
    polls_in_vain = 0;
  else if (++polls_in_vain, ++polls_before_look % kPollsBeforeLook == 0) {
    look_at_streams();
    look_for_failures();
  }
  return has_moved;
}

void wait_until(bool (*done)(void*), void* context) noexcept {
  while (!done(context)) step();
}

void wait_for_memory(bool (*done)(void*), void* context) noexcept {
  constexpr std::uint32_t kBetweenClocks = 64;
  constexpr std::int64_t kLongNs = 400'000;
  constexpr std::int64_t kMostNs = 200'000;
  std::int64_t since = 0;
  bool waits_long = false;
  for (std::uint32_t in_vain = 0; !done(context);) {
    if (progress()) continue;
    if (wait_in_vain != nullptr) wait_in_vain();
    if (waiting == Waiting::kSpin && !big_lock.is_needed()) continue;
    if (in_vain == 0) since = now_ns();
    if (++in_vain % kBetweenClocks == 0) waits_long = now_ns() - since >= kLongNs;
    big_lock.unlock();
    if (waits_long && waiting != Waiting::kSpin) {
      // As share_processor() does: who waits long leaves it to the others for a while.
      const timespec rest = {0, std::min((now_ns() - since) / 8, kMostNs)};
      ::nanosleep(&rest, nullptr);
    } else {
      ::sched_yield();
    }
    big_lock.lock();
  }
}

int wait_for(Request& request) noexcept {
  while (!request.is_complete) step();
  return request.error;
}

int begin_send(Request& request) noexcept {
  set_up(request, Request::Kind::kSend);
  ++open_sends;
  if (request.peer == MPI_PROC_NULL) {
    complete(request, MPI_SUCCESS);
    return MPI_SUCCESS;
  }
  const std::uint32_t rank = request.comm->peers().world_rank(request.peer);
  int error = MPI_SUCCESS;
  if (rank == static_cast<std::uint32_t>(world.rank)) {
    error = send_to_self(request);
  } else if (Peer* const peer = peer_of(rank); peer == nullptr) {
    error = MPI_ERR_NO_MEM;
  } else if (peer->is_dead || request.comm->has_failed) {
    complete(request, MPI_ERR_PROC_ABORTED);
  } else {
    send_message(*peer, request);
  }
  if (error != MPI_SUCCESS) complete(request, error);
  return error;
}

void begin_receive(Request& request) noexcept {
  set_up(request, Request::Kind::kReceive);
  request.source = MPI_PROC_NULL;
  request.received_tag = MPI_ANY_TAG;
  if (request.peer == MPI_PROC_NULL) {
    complete(request, MPI_SUCCESS);
    return;
  }
  const std::uint32_t found = matching.find_message(envelope_of(request));
  if (found != Matching::kNone) {
    const Unexpected message = matching.take_message(found);
    consume(request, message);
  } else if (request.comm->has_failed || is_hopeless(request)) {
    complete(request, MPI_ERR_PROC_ABORTED);
  } else {
    matching.post(request);
    consider_inviting(request);
  }
}

void begin_matched_receive(Request& request, Message& message) noexcept {
  set_up(request, Request::Kind::kReceive);
  const Unexpected taken = message.message;
  messages.release(message);
  consume(request, taken);
}

bool cancel(Request& request) noexcept {
  if (request.is_complete || request.sequence == 0) return false;
  if (request.kind == Request::Kind::kReceive && revoke(request)) return true;
  if (request.kind == Request::Kind::kReceive)
    matching.withdraw(request);
  else if (request.kind != Request::Kind::kSend || !take_back(request))
    return false;
  request.is_cancelled = true;
  complete(request, MPI_SUCCESS);
  return true;
}

bool probe(Comm& comm, Plane plane, int source, int tag, Probed& out, bool take,
           Message** message) noexcept {
  const std::uint32_t found = matching.find_message({context_of(comm, plane), source, tag});
  if (found == Matching::kNone) return false;
  const Unexpected& kept = matching.message(found);
  if (!is_true(comm, kept.envelope, kept.world_rank)) {
    release_payload(matching.take_message(found));
    return false;
  }
  out = {kept.envelope.source, kept.envelope.tag, kept.length};
  if (!take) return true;
  *message = messages.make();
  if (*message != nullptr) {
    (*message)->comm = &comm;
    (*message)->message = matching.take_message(found);
  }
  return true;
}

void exchange(Request& outgoing, Request& incoming) noexcept {
  begin_receive(incoming);
  (void)begin_send(outgoing);
  if (wait_for(outgoing) != MPI_SUCCESS) (void)cancel(incoming);
  (void)wait_for(incoming);
}

namespace {

Request message_of(Comm& comm, Plane plane, int peer, int tag, void* buffer, std::int64_t count,
                   Datatype& type) noexcept {
  Request request;
  request.comm = &comm;
  request.plane = plane;
  request.peer = peer;
  request.tag = tag;
  request.buffer = buffer;
  request.count = count;
  request.type = &type;
  request.is_waited_for = true;
  return request;
}

}  // namespace

int send_to(Comm& comm, Plane plane, int dest, int tag, const void* buffer, std::int64_t count,
            Datatype& type) noexcept {
  Request request = message_of(comm, plane, dest, tag, const_cast<void*>(buffer), count, type);
  if (send_at_once(request)) return MPI_SUCCESS;
  (void)begin_send(request);
  return wait_for(request);
}

int receive_from(Comm& comm, Plane plane, int source, int tag, void* buffer, std::int64_t count,
                 Datatype& type) noexcept {
  Request request = message_of(comm, plane, source, tag, buffer, count, type);
  if (receive_at_once(request, Looks::kMany)) return MPI_SUCCESS;
  begin_receive(request);
  return wait_for(request);
}

int exchange(Comm& comm, Plane plane, int dest, int send_tag, const void* send_buffer,
             std::int64_t send_count, Datatype& send_type, int source, int receive_tag,
             void* receive_buffer, std::int64_t receive_count, Datatype& receive_type) noexcept {
  Request outgoing = message_of(comm, plane, dest, send_tag, const_cast<void*>(send_buffer),
                                send_count, send_type);
  Request incoming =
      message_of(comm, plane, source, receive_tag, receive_buffer, receive_count, receive_type);
  exchange(outgoing, incoming);
  return outgoing.error != MPI_SUCCESS ? outgoing.error : incoming.error;
}

const char* open_device() noexcept {
  waiting = wish();
  // Giving the processor away is ours (idle()).
  if (waiting != Waiting::kSleep) verbatim::let_empty_polls_spin();
  return fabric.open();
}

void choose_waiting() noexcept {
  waiting = wish();
  // Who has no events to wait for gives the processor away.
  if (waiting == Waiting::kSleep && fabric.channel == nullptr) waiting = Waiting::kShare;
}

const char* start_engine() noexcept {
  if (!matching.start()) return "no memory";
  if (world.size == 1) return nullptr;
  if (const char* const wrong = open_device(); wrong != nullptr) return wrong;
  if (!publish_address()) return "the launcher does not take this process's address";
  if (!bootstrap_barrier()) return "the launcher ended, or not all processes reached MPI_Init";
  return nullptr;
}

void drain_to(const Comm& comm, std::int64_t until) noexcept {
  struct Draining {
    const Comm& comm;
    std::int64_t until;
  } draining = {comm, until};
  wait_until(
      [](void* context) {
        const Draining& at = *static_cast<Draining*>(context);
        bool have_all = true;
        for (int member : at.comm.peers().members)
          if (Peer* const peer = known_peer(static_cast<std::uint32_t>(member)); peer != nullptr)
            have_all = has_taken_all(*peer) && have_all;
        return have_all || now_ns() > at.until;
      },
      &draining);
}

void stop_engine() noexcept {
  if (is_anybody_lost()) lament_no_more();
  while (fabric.is_open() && !is_drained()) step();
  // Who leaves before all have come here would look like one that died, and who has left does.
  lament_no_more();
  bool have_all_come = false;
  if (world.size > 1 && !is_anybody_lost() && enter_bootstrap_barrier()) {
    constexpr int kMilliseconds = 1;
    BarrierState state = BarrierState::kWaiting;
    do state = leave_bootstrap_barrier(progress() ? 0 : kMilliseconds);
    while (state == BarrierState::kWaiting && !is_anybody_lost());
    have_all_come = state == BarrierState::kLeft;
  }
  if (!have_all_come && is_anybody_lost() && !world.is_of_teams) {
    say_that_we_leave();
    const std::int64_t until = now_ns() + kPatienceForLeft;
    while (fabric.is_open() && !is_drained() && now_ns() < until) step();
  }
  stop_looking();
  transfers.each([](Transfer& transfer) noexcept { release_transfer(transfer); });
  transfers.clear();
  invited = 0;
  messages.each([](Message& message) noexcept { release_payload(message.message); });
  messages.clear();
  matching.stop();
  forget_busy();
  if (drop_host_teams != nullptr) drop_host_teams();
  stop_peers();
  release_mapped();
  if (fabric.is_open()) fabric.close();
}

}  // namespace vmpi
