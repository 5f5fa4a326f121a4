// SPDX-License-Identifier: BSD-2-Clause
#include "tests/vm/siw_faults.hpp"

#include <cstdio>
#include <string>

namespace verbatim::vm {
namespace {

constexpr int kLimit = 4;

bool says(const std::string& words, const char* part) {
  const bool does = words.find(part) != std::string::npos;
  if (!does) std::fprintf(stderr, "\"%s\" is not in: %s\n", part, words.c_str());
  return does;
}

/// Of a connection that this side called for.
void explains_to_the_server(End& end, const ibv_wc* wc, const char* part) {
  const std::string words = end.explained(wc);
  VM_REQUIRE(says(words, " to 10.2.0.1 port 18600"));
  VM_REQUIRE(says(words, part));
}

/// Of a request of the peer's that was refused here.
void hear_of_refusal(End& end, ibv_event_type type) {
  VM_REQUIRE(end.next_async(type).element.qp == end.qp);
  const std::string words = end.explained(nullptr);
  VM_REQUIRE(says(words, " to 10.2.0.1 port "));
  VM_REQUIRE(says(words, "a request of the peer's was refused"));
}

void lose_a_key(End& end) {
  // The driver tells programs nothing of what a message has invalidated.
  const ibv_wc wc = end.next(IBV_WC_RECV);
  VM_REQUIRE((wc.wc_flags & IBV_WC_WITH_INV) == 0);
  check_message(end, wc, 16, 1);
  VM_REQUIRE(holds(end.memory() + kTarget, 64, 2));
  fill(end.memory() + kTarget, 64, 3);
  say(end, 8, 4);
  hear_of_refusal(end, IBV_EVENT_QP_ACCESS_ERR);
  VM_REQUIRE(holds(end.memory() + kTarget, 64, 3));
}

void take_a_key(End& end) {
  fill(end.memory() + kMessage, 64, 2);
  const std::uint32_t good = end.remote.rkey;
  end.remote.rkey = end.remote.lent;
  VM_REQUIRE(end.send(IBV_WR_RDMA_WRITE, kMessage, 64, kTarget) == 0);
  end.next(IBV_WC_RDMA_WRITE);
  fill(end.memory() + kMessage, 16, 1);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(end.memory() + kMessage), 16, end.lkey()};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = end.remote.lent;
  VM_REQUIRE(end.send(wr) == 0);
  end.next(IBV_WC_SEND);
  hear(end, 8, 4);
  // To the sender a WRITE is done when it is sent.
  VM_REQUIRE(end.send(IBV_WR_RDMA_WRITE, kMessage, 64, kTarget) == 0);
  end.remote.rkey = good;
}

void run_low(End& end) {
  hear(end, 8, 3);  // who asked for the connection speaks first
  ibv_srq_attr attr{};
  attr.max_wr = 4 * End::kReceives;
  VM_REQUIRE(ibv_modify_srq(end.srq, &attr, IBV_SRQ_MAX_WR) == EOPNOTSUPP);
  attr.srq_limit = 4 * End::kReceives;
  VM_REQUIRE(ibv_modify_srq(end.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
  attr.srq_limit = kLimit;
  VM_REQUIRE(ibv_modify_srq(end.srq, &attr, IBV_SRQ_LIMIT) == 0);
  VM_REQUIRE(ibv_query_srq(end.srq, &attr) == 0);
  VM_REQUIRE(attr.srq_limit == kLimit && attr.max_wr == End::kReceives && attr.max_sge >= 1);
  say(end, 8, 1);
  for (int i = 0; i <= End::kReceives - kLimit; ++i)
    VM_REQUIRE(end.next(IBV_WC_RECV).byte_len == 16);
  VM_REQUIRE(end.next_async(IBV_EVENT_SRQ_LIMIT_REACHED).element.srq == end.srq);
  for (int i = 0; i <= End::kReceives - kLimit; ++i) end.post_receive(i);
  say(end, 8, 2);
}

void let_run_low(End& end) {
  say(end, 8, 3);
  hear(end, 8, 1);
  for (int i = 0; i <= End::kReceives - kLimit; ++i) say(end, 16, 1);
  hear(end, 8, 2);
}

/// Memory of nobody's, by a key that is none.
void send_what_is_not_ours(End& end) {
  ibv_sge sge{0x1000, 64, end.lkey() ^ 0x5500};
  ibv_send_wr wr{};
  wr.wr_id = 77;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  VM_REQUIRE(end.send(wr) == 0);
  const ibv_wc wc = end.next();
  VM_REQUIRE(wc.wr_id == 77 && wc.status == IBV_WC_LOC_QP_OP_ERR);
  explains_to_the_server(end, &wc, "SEND, wr_id 77: local QP operation error (vendor_err 3): lkey");
  VM_REQUIRE(end.next_async(IBV_EVENT_QP_FATAL).element.qp == end.qp);
}

}  // namespace

void suffer(End& end, std::string_view ending) {
  // What it cannot read to answer with is an error of the request, as it sees it.
  if (ending == "wrong") hear_of_refusal(end, IBV_EVENT_QP_REQ_ERR);
  if (ending == "invalidated") lose_a_key(end);
  if (ending == "beyond") hear_of_refusal(end, IBV_EVENT_QP_ACCESS_ERR);
  if (ending == "scarce") run_low(end);
}

/// A WRITE is done when its bytes are on their way. Until then the server may have ended the
/// connection.
static void hear_of_write(End& end) {
  const ibv_wc wc = end.next();
  VM_REQUIRE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_QP_OP_ERR ||
             wc.status == IBV_WC_WR_FLUSH_ERR);
}

bool do_wrong(End& end, std::string_view ending) {
  if (ending == "wrong") {
    end.remote.rkey ^= 0x5500;
    VM_REQUIRE(end.send(IBV_WR_RDMA_READ, kRead, 64, kSource) == 0);
    const ibv_wc wc = end.next();
    VM_REQUIRE(wc.status != IBV_WC_SUCCESS);
    explains_to_the_server(end, &wc, "");
  } else if (ending == "invalidated") {
    take_a_key(end);
    hear_of_write(end);
  } else if (ending == "beyond") {
    VM_REQUIRE(end.send(IBV_WR_RDMA_WRITE, kMessage, 64, End::kBytes - 63) == 0);
    hear_of_write(end);
  } else if (ending == "mistaken") {
    send_what_is_not_ours(end);
  } else if (ending == "scarce") {
    let_run_low(end);
    return false;
  } else {
    return false;
  }
  return true;
}

}  // namespace verbatim::vm
