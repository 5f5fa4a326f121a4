// SPDX-License-Identifier: BSD-2-Clause
// Two processes over siw, connected by our rdma_cm room: what they say to each other, and how it
// ends. Runs inside tests/vm/run, from siw_ours_test.sh.
//
//   siw_ends serve ADDRESS PORT ENDING ...       serves one connection for each ENDING
//   siw_ends ENDING ADDRESS PORT                 is the other side of it
//
//   siw_ends lacks                               what the driver does not have, and says so
//
// ENDING: talk (and a disconnect), shared (the same with a shared receive queue on the serving
// side), cursor (the same with completions read by ibv_start_poll), killed (in the middle of a
// connection), closed (the caller's device, with all that was made of it left), refused (never
// connected), and what siw_faults.hpp has.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/vm/siw_end.hpp"
#include "tests/vm/siw_faults.hpp"

namespace verbatim::vm {
namespace {

using rdma_cm::EventType;

constexpr std::uint64_t kMessageId = 1000 + kMessage;

unsigned char pattern(std::size_t i, unsigned seed) {
  return static_cast<unsigned char>((i * 31 + seed * 7 + (i >> 8)) & 0xff);
}

}  // namespace

void fill(unsigned char* at, std::size_t length, unsigned seed) {
  for (std::size_t i = 0; i < length; ++i) at[i] = pattern(i, seed);
}
bool holds(const unsigned char* at, std::size_t length, unsigned seed) {
  for (std::size_t i = 0; i < length; ++i) {
    if (at[i] != pattern(i, seed)) return false;
  }
  return true;
}

void check_message(End& end, const ibv_wc& wc, std::size_t length, unsigned seed) {
  VM_REQUIRE(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
  VM_REQUIRE(wc.byte_len == length);
  VM_REQUIRE(holds(end.received(wc.wr_id), length, seed));
  end.post_receive(static_cast<int>(wc.wr_id));
}
void hear(End& end, std::size_t length, unsigned seed) {
  check_message(end, end.next(IBV_WC_RECV), length, seed);
}
void say(End& end, std::size_t length, unsigned seed, unsigned flags) {
  fill(end.memory() + kMessage, length, seed);
  VM_REQUIRE(end.send(IBV_WR_SEND, kMessage, length, 0, flags) == 0);
  end.next(IBV_WC_SEND);
}

namespace {

/// What a connection manager does when it hears of the end. The driver flushes by itself where it
/// is the first to know, but not on the side of which it was asked for what cannot be.
void tell_of_the_end(End& end) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  VM_REQUIRE(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE) == 0);
}

/// The connection is over: what was posted is flushed, and so is what is posted from now on.
void expect_flushed(End& end, int receives) {
  for (int i = 0; i < receives; ++i) VM_REQUIRE(end.next().status == IBV_WC_WR_FLUSH_ERR);
  VM_REQUIRE(end.idle());
  if (receives != 0) {
    end.post_receive(3);
    const ibv_wc wc = end.next();
    VM_REQUIRE(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 3);
  }
  VM_REQUIRE(end.send(IBV_WR_SEND, kMessage, 8) == 0);
  const ibv_wc wc = end.next();
  VM_REQUIRE(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == kMessageId);
  VM_REQUIRE(end.idle());
  VM_REQUIRE(end.state() == IBV_QPS_ERR);
}

/// Who asked for the connection speaks first (RFC 5044, 7.1.2).
void talk(End& end) {
  say(end, 60, 1, IBV_SEND_INLINE);
  hear(end, 4096, 2);
  VM_REQUIRE(end.state() == IBV_QPS_RTS);

  // A message in pieces.
  unsigned char* const from = end.memory() + kMessage;
  const auto base = reinterpret_cast<std::uintptr_t>(from);
  fill(from, 6000, 3);
  ibv_sge pieces[4] = {{base, 1, end.lkey()},
                       {base + 1, 0, end.lkey()},
                       {base + 1, 4000, end.lkey()},
                       {base + 4001, 1999, end.lkey()}};
  ibv_send_wr wr{};
  wr.sg_list = pieces;
  wr.num_sge = 4;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  VM_REQUIRE(end.send(wr) == 0);
  end.next(IBV_WC_SEND);

  // Into the other side's memory, and out of it. A READ is fenced without being asked.
  fill(end.memory() + kSource, kMegabyte, 4);
  VM_REQUIRE(end.send(IBV_WR_RDMA_WRITE, kSource, kMegabyte, kTarget) == 0);
  end.next(IBV_WC_RDMA_WRITE);
  say(end, 8, 5);
  hear(end, 8, 6);
  VM_REQUIRE(end.send(IBV_WR_RDMA_READ, kRead, kMegabyte, kSource, IBV_SEND_FENCE) == 0);
  VM_REQUIRE(end.next(IBV_WC_RDMA_READ).wr_id == 1000 + kRead);
  VM_REQUIRE(holds(end.memory() + kRead, kMegabyte, 7));

  // Nothing at all, in two ways.
  VM_REQUIRE(end.send(IBV_WR_RDMA_WRITE, kMessage, 0, kTarget) == 0);
  end.next(IBV_WC_RDMA_WRITE);
  say(end, 0, 0, IBV_SEND_INLINE);

  // Call by call; the write is told to nobody.
  fill(from, 48, 8);
  ibv_qp_ex* const qp = end.extended;
  ibv_wr_start(qp);
  qp->wr_id = 5;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, end.remote.rkey, end.remote.address + kTarget);
  ibv_wr_set_inline_data(qp, from, 48);
  qp->wr_id = 6;
  qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, end.lkey(), base, 48);
  VM_REQUIRE(ibv_wr_complete(qp) == 0);
  VM_REQUIRE(end.next(IBV_WC_SEND).wr_id == 6);

  // By an event.
  hear(end, 100, 9);
  VM_REQUIRE(end.idle());
  end.arm();
  ibv_sge sge{base, 8, end.lkey()};
  fill(from, 8, 10);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = 0;
  VM_REQUIRE(end.send(wr) == 0);
  check_message(end, end.next_by_event(), 8, 11);

  // More than the queues hold, so that their ends are crossed.
  for (unsigned i = 0; i < 200; ++i) {
    say(end, 16, i);
    hear(end, 16, i + 1);
  }
}

void answer(End& end) {
  hear(end, 60, 1);
  say(end, 4096, 2);
  hear(end, 6000, 3);
  hear(end, 8, 5);
  VM_REQUIRE(holds(end.memory() + kTarget, kMegabyte, 4));
  fill(end.memory() + kSource, kMegabyte, 7);
  say(end, 8, 6);
  hear(end, 0, 0);
  hear(end, 48, 8);
  VM_REQUIRE(holds(end.memory() + kTarget, 48, 8));
  say(end, 100, 9);
  hear(end, 8, 10);
  say(end, 8, 11);
  for (unsigned i = 0; i < 200; ++i) {
    hear(end, 16, i);
    say(end, 16, i + 1);
  }
}

void serve_one(rdma_cm::EventChannel& channel, rdma_cm::Identifier& listener,
               std::string_view ending) {
  const rdma_cm::Event request = next_event(channel, EventType::kConnectRequest);
  VM_REQUIRE(request.about == &listener);
  End end(channel);
  end.adopt(request);
  if (ending == "refused") {
    const unsigned char why[] = "not today";
    VM_REQUIRE(end.id.reject(why) == 0);
    return;
  }
  const bool shares = ending == "shared" || ending == "scarce";
  const bool talks = ending == "talk" || ending == "cursor" || ending == "shared";
  end.make_queues({shares, ending == "cursor"});
  VM_REQUIRE(end.id.accept(end.parameters()) == 0);
  VM_REQUIRE(next_event(channel, EventType::kEstablished).about == &end.id);
  if (talks) answer(end);
  if (ending == "wrong" || ending == "killed" || ending == "closed") hear(end, 16, 1);
  suffer(end, ending);
  const rdma_cm::Event over = next_event(channel, EventType::kDisconnected);
  VM_REQUIRE(over.about == &end.id);
  if (ending != "talk" && ending != "cursor") tell_of_the_end(end);
  // A shared queue's receives are no queue pair's, and stay.
  expect_flushed(end, shares ? 0 : End::kReceives);
}

int serve(int count, char** endings, const sockaddr_in& at) {
  rdma_cm::EventChannel channel;
  VM_REQUIRE(channel.open() == 0);
  rdma_cm::Identifier listener;
  VM_REQUIRE(listener.create(channel, RDMA_PS_TCP) == 0);
  VM_REQUIRE(listener.bind(reinterpret_cast<const sockaddr*>(&at)) == 0);
  VM_REQUIRE(listener.listen(4) == 0);
  for (int i = 0; i < count; ++i) {
    serve_one(channel, listener, endings[i]);
    std::printf("served: %s\n", endings[i]);
    std::fflush(stdout);
  }
  VM_REQUIRE(listener.destroy() == 0);
  return 0;
}

int call(std::string_view ending, const char* address, std::uint16_t port) {
  rdma_cm::EventChannel channel;
  VM_REQUIRE(channel.open() == 0);
  End end(channel);
  end.resolve(address, port);
  end.make_queues({false, ending == "cursor"});
  VM_REQUIRE(end.id.connect(end.parameters()) == 0);
  if (ending == "refused") {
    const rdma_cm::Event event = next_event(channel, EventType::kRejected);
    VM_REQUIRE(event.parameters.private_data_len >= 9);
    VM_REQUIRE(std::memcmp(event.parameters.private_data, "not today", 9) == 0);
    expect_flushed(end, End::kReceives);
    return 0;
  }
  end.take_remote(next_event(channel, EventType::kEstablished));
  if (ending == "talk" || ending == "cursor" || ending == "shared") talk(end);
  if (ending == "wrong" || ending == "killed" || ending == "closed") say(end, 16, 1);
  if (ending == "killed") ::raise(SIGKILL);
  if (ending == "closed") {
    end.close();
    return 0;
  }
  if (!do_wrong(end, ending)) VM_REQUIRE(end.id.disconnect() == 0);
  VM_REQUIRE(next_event(channel, EventType::kDisconnected).about == &end.id);
  expect_flushed(end, End::kReceives);
  return 0;
}

}  // namespace
}  // namespace verbatim::vm

int main(int count, char** arguments) {
  using namespace verbatim::vm;
  if (count == 2 && std::string_view(arguments[1]) == "lacks") return show_what_lacks();
  VM_REQUIRE(count >= 4);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  VM_REQUIRE(::inet_pton(AF_INET, arguments[2], &at.sin_addr) == 1);
  const auto port = static_cast<std::uint16_t>(std::atoi(arguments[3]));
  at.sin_port = htons(port);
  if (std::string_view(arguments[1]) == "serve") return serve(count - 4, arguments + 4, at);
  return call(arguments[1], arguments[2], port);
}
