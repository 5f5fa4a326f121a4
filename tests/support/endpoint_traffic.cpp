// SPDX-License-Identifier: BSD-2-Clause
//
// Endpoint: posting, polling, events, and the small programs that run without orders.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <verbatim/explain.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "tests/support/endpoint.hpp"

namespace verbatim::harness {
namespace {

bool readable(int fd, std::int32_t wait_ms) {
  const Deadline deadline(wait_ms);
  pollfd wait{fd, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, deadline.remaining_ms());
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

/// Chains `wrs` and says which of them *bad_wr named.
template <class Wr, class Post>
Posted post_chained(std::vector<Wr>& wrs, Post&& post) {
  for (std::size_t i = 0; i + 1 < wrs.size(); ++i) wrs[i].next = &wrs[i + 1];
  Wr* bad = nullptr;
  Posted answer;
  answer.error = post(wrs.data(), &bad);
  if (answer.error != 0 && bad != nullptr) answer.bad = static_cast<std::int32_t>(bad - wrs.data());
  return answer;
}

}  // namespace

ibv_sge Endpoint::to_sge(const Slice& piece) {
  const Region& region = regions_.at(static_cast<std::size_t>(piece.region));
  return {region.iova + piece.offset, piece.length, piece.lkey != 0 ? piece.lkey : region.lkey};
}

Posted Endpoint::post_send(std::int32_t id, std::vector<Request> requests) {
  std::vector<ibv_send_wr> wrs(requests.size());
  std::vector<ibv_sge> sges(requests.size() * kSliceSlots);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    ibv_sge* const list = &sges[i * kSliceSlots];
    for (std::int32_t s = 0; s < request.from.count; ++s) list[s] = to_sge(request.from.at[s]);
    ibv_send_wr& wr = wrs[i];
    wr.wr_id = request.wr_id;
    wr.sg_list = list;
    wr.num_sge = request.from.count;
    wr.opcode = request.opcode;
    wr.send_flags = request.flags;
    if (request.opcode == IBV_WR_SEND_WITH_INV || request.opcode == IBV_WR_LOCAL_INV) {
      wr.invalidate_rkey = request.invalidate_rkey;
    } else {
      wr.imm_data = htonl(request.imm);
    }
    wr.qp_type.xrc.remote_srqn = request.remote_srqn;
    if (info(id).type == IBV_QPT_UD) {
      wr.wr.ud = {request.ah < 0 ? nullptr : ah(request.ah), request.remote_qpn,
                  request.remote_qkey};
      continue;
    }
    if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
        request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_FLUSH) {
      wr.wr.atomic.remote_addr = request.remote_address;
      wr.wr.atomic.rkey = request.rkey;
      wr.wr.atomic.compare_add = request.compare_add;
      wr.wr.atomic.swap = request.swap;
    } else {
      wr.wr.rdma.remote_addr = request.remote_address;
      wr.wr.rdma.rkey = request.rkey;
    }
  }
  return post_chained(wrs, [&](ibv_send_wr* first, ibv_send_wr** bad) {
    return ibv_post_send(qp(id), first, bad);
  });
}

template <class Post>
Posted Endpoint::post_receives(const std::vector<Receive>& receives, Post&& post) {
  std::vector<ibv_recv_wr> wrs(receives.size());
  std::vector<ibv_sge> sges(receives.size() * kSliceSlots);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    ibv_sge* const list = &sges[i * kSliceSlots];
    const SliceList& to = receives[i].to;
    for (std::int32_t s = 0; s < to.count; ++s) list[s] = to_sge(to.at[s]);
    wrs[i].wr_id = receives[i].wr_id;
    wrs[i].sg_list = list;
    wrs[i].num_sge = to.count;
  }
  return post_chained(wrs, post);
}

Posted Endpoint::post_receive(std::int32_t id, std::vector<Receive> receives) {
  return post_receives(receives, [&](ibv_recv_wr* first, ibv_recv_wr** bad) {
    return ibv_post_recv(qp(id), first, bad);
  });
}

Posted Endpoint::post_srq_receive(std::int32_t id, std::vector<Receive> receives) {
  return post_receives(receives, [&](ibv_recv_wr* first, ibv_recv_wr** bad) {
    return ibv_post_srq_recv(srq(id), first, bad);
  });
}

std::vector<ibv_wc> Endpoint::poll_once(std::int32_t id, std::uint32_t most) {
  // What no device has, so that a field that stays unwritten is not the zero that was due.
  ibv_wc unwritten{};
  unwritten.pkey_index = 0xFFFF;
  std::vector<ibv_wc> wcs(most, unwritten);
  const int n = ibv_poll_cq(cq(id), static_cast<int>(most), wcs.data());
  if (n < 0) throw std::runtime_error("ibv_poll_cq answered " + std::to_string(n));
  wcs.resize(static_cast<std::size_t>(n));
  return wcs;
}

std::vector<ibv_wc> Endpoint::poll(std::int32_t id, std::uint32_t count, std::int32_t wait_ms) {
  std::vector<ibv_wc> all;
  const bool in_time = wait_until(
      [&] {
        const auto some = poll_once(id, count - static_cast<std::uint32_t>(all.size()));
        all.insert(all.end(), some.begin(), some.end());
        return all.size() == count;
      },
      wait_ms);
  if (!in_time) {
    throw std::runtime_error("waited for " + std::to_string(count) + " completions, got " +
                             std::to_string(all.size()) + ": " + describe(all));
  }
  return all;
}

std::int32_t Endpoint::arm(std::int32_t id, std::int32_t solicited_only) {
  return ibv_req_notify_cq(cq(id), solicited_only);
}

bool Endpoint::event_pending(std::int32_t id) { return readable(cq(id)->channel->fd, 0); }

std::int32_t Endpoint::take_event(std::int32_t id, std::int32_t wait_ms) {
  ibv_comp_channel* channel = cq(id)->channel;
  if (!readable(channel->fd, wait_ms)) return -1;
  ibv_cq* named = nullptr;
  void* cookie = nullptr;
  if (ibv_get_cq_event(channel, &named, &cookie) != 0) {
    throw std::runtime_error("ibv_get_cq_event failed on a readable channel");
  }
  ibv_ack_cq_events(named, 1);
  for (std::size_t i = 0; i < cqs_.size(); ++i) {
    if (cqs_[i].handle.get() == named) return static_cast<std::int32_t>(i);
  }
  throw std::runtime_error("the event names no CQ of ours");
}

std::vector<std::uint8_t> Endpoint::explain(std::int32_t id, std::uint64_t wr_id,
                                            std::int32_t status) {
  char text[2048];
  const int length = status < 0
                         ? vbt_explain(qp(id), nullptr, text, sizeof text)
                         : vbt_explain_completion(qp(id), wr_id, static_cast<ibv_wc_status>(status),
                                                  text, sizeof text);
  if (length < 0) return {};
  return {text, text + length};
}

AsyncEvent Endpoint::take_async_event(std::int32_t wait_ms) {
  AsyncEvent told;
  if (!readable(context()->async_fd, wait_ms)) return told;
  ibv_async_event event{};
  if (ibv_get_async_event(context(), &event) != 0) {
    throw std::runtime_error("ibv_get_async_event failed on a readable descriptor");
  }
  told.type = event.event_type;
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    if (qps_[i].handle.get() == event.element.qp) told.qp = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = 0; i < cqs_.size(); ++i) {
    if (cqs_[i].handle.get() == event.element.cq) told.cq = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = 0; i < srqs_.size(); ++i) {
    if (srqs_[i].handle.get() == event.element.srq) told.srq = static_cast<std::int32_t>(i);
  }
  ibv_ack_async_event(&event);
  return told;
}

std::vector<ibv_wc> Endpoint::storm(std::int32_t id, Request request, std::uint32_t depth,
                                    std::uint64_t enough) {
  const std::int32_t cq = info(id).send_cq;
  std::vector<ibv_wc> failures;
  std::uint64_t succeeded = 0;
  std::uint32_t in_flight = 0;
  const Deadline deadline;
  while (succeeded < enough) {
    while (failures.empty() && in_flight < depth && post_send(id, {request}).error == 0)
      ++in_flight;
    for (const ibv_wc& wc : poll_once(cq, depth)) {
      --in_flight;
      if (wc.status == IBV_WC_SUCCESS) {
        ++succeeded;
      } else {
        failures.push_back(wc);
      }
    }
    if (!failures.empty() && in_flight == 0) break;
    if (deadline.passed()) throw std::runtime_error("the storm did not end in time");
    sched_yield();
  }
  if (failures.empty() && in_flight != 0) poll(cq, in_flight, kDefaultWaitMs);
  return failures;
}

std::vector<ibv_wc> Endpoint::storms(std::vector<std::int32_t> qps, std::vector<Request> requests,
                                     std::uint32_t depth) {
  std::vector<std::optional<ibv_wc>> failures(qps.size());
  std::vector<std::uint32_t> in_flight(qps.size());
  std::size_t going = qps.size();
  const Deadline deadline;
  while (going != 0) {
    for (std::size_t i = 0; i < qps.size(); ++i) {
      if (failures[i] && in_flight[i] == 0) continue;
      while (!failures[i] && in_flight[i] < depth && post_send(qps[i], {requests[i]}).error == 0) {
        ++in_flight[i];
      }
      for (const ibv_wc& wc : poll_once(info(qps[i]).send_cq, depth)) {
        --in_flight[i];
        if (!failures[i] && wc.status != IBV_WC_SUCCESS) failures[i] = wc;
      }
      if (failures[i] && in_flight[i] == 0) --going;
    }
    if (deadline.passed()) throw std::runtime_error("the storms did not end in time");
    sched_yield();
  }
  std::vector<ibv_wc> firsts;
  for (const auto& failure : failures) firsts.push_back(*failure);
  return firsts;
}

void Endpoint::ping_pong_by_events(std::int32_t id, std::uint32_t rounds, std::uint32_t bytes,
                                   bool first) {
  constexpr std::uint32_t kReceives = 8;
  const RegionInfo memory = allocate(MemoryKind::kOrdinary, 2 * bytes, kAllAccess);
  const Receive receive{0, slice(memory, 0, bytes)};
  const std::vector<Request> message{send(0, slice(memory, bytes, bytes))};
  for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(id, {receive});
  const std::int32_t cq = info(id).receive_cq;
  const auto await_one = [&] {
    while (poll_once(cq, 1).empty()) {
      arm(cq, 0);
      // It may have come before we armed: then no event will.
      if (!poll_once(cq, 1).empty()) break;
      if (take_event(cq, kDefaultWaitMs) != cq) throw std::runtime_error("a wakeup was lost");
    }
    post_receive(id, {receive});
  };
  for (std::uint32_t round = 0; round < rounds; ++round) {
    if (!first) await_one();
    if (const Posted sent = post_send(id, message); sent.error != 0) {
      throw std::runtime_error("post_send: " + std::string(std::strerror(sent.error)));
    }
    const std::vector<ibv_wc> done = poll(info(id).send_cq, 1, kDefaultWaitMs);
    if (done[0].status != IBV_WC_SUCCESS) throw std::runtime_error(describe(done));
    if (first) await_one();
  }
}

void Endpoint::pause_until_signal() {
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(SIGUSR1, &wake, nullptr);
  pause();
}

std::string describe(const std::vector<ibv_wc>& wcs) {
  std::ostringstream out;
  for (const ibv_wc& wc : wcs) {
    out << "[wr " << wc.wr_id << ' ' << ibv_wc_status_str(wc.status) << " opcode " << wc.opcode
        << "] ";
  }
  return out.str();
}

}  // namespace verbatim::harness
