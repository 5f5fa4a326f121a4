// SPDX-License-Identifier: BSD-2-Clause
//
// XRC between more than two processes: `a` sends from here, the connection ends in `b`, and queues
// of the same domain are in `c` and others.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/two_sides.hpp"

namespace verbatim::harness {

class BetweenProcesses : public BetweenTwo {
 protected:
  ~BetweenProcesses() override {
    if (!file_.empty()) std::filesystem::remove(file_);
  }

  /// A process of the domain; or, with another `name`, of another one.
  std::unique_ptr<Side> process(const std::string& name = "") {
    const std::map<std::string, std::string> there{{kDeviceVariable, device()}};
    auto side = std::make_unique<Side>(there);
    enter_domain(*side, name);
    return side;
  }
  /// Before it has anything of XRC.
  void enter_domain(Side& side, const std::string& name = "") {
    const std::string base = (std::filesystem::temp_directory_path() /
                              ("verbatim-xrc-" + std::to_string(::getpid()) + "-"))
                                 .string();
    side.call<&Endpoint::use_xrcd_of>(base + name);
    if (name.empty())
      file_ = base;
    else
      std::filesystem::remove(base + name);
  }
  struct Connection {
    QpInfo sender, target;
  };
  /// From `asks` to `ends`, which has the target.
  Connection connect(Side& asks, Side& ends, const Link& link = {}, const QpWish& sends = {},
                     const Link& answers = {}) {
    QpWish wish = sends;
    wish.type = IBV_QPT_XRC_SEND;
    Connection made;
    made.sender = asks.create_qp(wish);
    wish = {};
    wish.type = IBV_QPT_XRC_RECV;
    made.target = ends.create_qp(wish);
    asks.connect(made.sender, made.target, link);
    ends.connect(made.target, made.sender, answers);
    return made;
  }
  static SrqInfo queue(Side& in, SrqWish wish = {}) {
    wish.xrc = 1;
    return in.create_srq(wish);
  }
  static Request to(const SrqInfo& queue, Request request) {
    request.remote_srqn = queue.srqn;
    return request;
  }
  /// `a`, `b` and `c`, one connection, one queue, and memory for them.
  void start(const Link& link = {}, const Link& answers = {}) {
    a = std::make_unique<Side>(std::make_shared<Session>(device()));
    b = process();
    c = process();
    way = connect(*a, *b, link, {}, answers);
    shared = queue(*c);
    from = a->allocate(memory(), 256_KiB);
    into = c->allocate(memory(), 256_KiB);
  }
  void post(std::uint64_t id, std::uint64_t offset, std::uint64_t size) {
    expect_posted(c->post_srq_receive(shared, {receive(id, slice(into, offset, size))}));
  }
  ibv_wc received(Side& side, const SrqInfo& at) {
    return side.call<&Endpoint::poll>(at.cq, 1u, kDefaultWaitMs)[0];
  }
  ibv_wc sent(const Connection& by) { return a->poll_sends(by.sender, 1)[0]; }
  ibv_wc do_one(const Request& request) {
    const Posted posted = a->post_send(way.sender, request);
    EXPECT_EQ(posted.error, 0);
    return sent(way);
  }

  std::unique_ptr<Side> a, b, c;
  Connection way;
  SrqInfo shared;
  RegionInfo from, into;

 private:
  std::string file_;
};

}  // namespace verbatim::harness
