// SPDX-License-Identifier: BSD-2-Clause
#include "tests/death/roles.hpp"

#include <poll.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "tests/support/role.hpp"

namespace verbatim::death {
namespace {

bool readable(const harness::Control& control) {
  pollfd wait{control.fd(), POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

/// A child that does nothing, has all that was inherited, and outlives us: until the test has
/// closed its end, which it hears although we were killed before we could tell of it.
void leave_a_child(const harness::Control& control) {
  if (fork() != 0) return;
  alarm(60);
  pollfd end{control.fd(), 0, 0};
  while (::poll(&end, 1, -1) < 0) {
  }
  _exit(0);
}

}  // namespace

VBT_ROLE(victim) {
  const auto plan = control.receive_value<Plan>();
  harness::Session session;
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<std::unique_ptr<Half>> halves;
  std::vector<Offer> others;
  const std::uint32_t survivors = plan.with_bystander ? 2 : 1;
  for (std::uint32_t i = 0; i < survivors; ++i) {
    memories.push_back(std::make_unique<Memory>(plan.mapped));
    halves.push_back(std::make_unique<Half>(session, *memories.back(), plan, Half::Part::kVictim));
    control.send_value(halves.back()->offer());
  }
  for (std::uint32_t i = 0; i < survivors; ++i) {
    others.push_back(control.receive_value<Offer>());
    halves[i]->connect(others[i]);
  }
  if (plan.leaves_child) leave_a_child(control);
  control.send_value(std::uint32_t{1});
  for (std::uint32_t turn = 1;; ++turn) {
    for (const auto& half : halves) half->pump();
    if (turn % 16 != 0) continue;
    if (plan.moment == Moment::kLeaving && readable(control)) return 0;
    if (plan.moment != Moment::kChurn || !readable(control)) continue;
    const std::uint32_t i = turn / 16 % survivors;
    halves[i].reset();
    halves[i] = std::make_unique<Half>(session, *memories[i], plan, Half::Part::kVictim);
    halves[i]->connect(others[i]);
  }
}

VBT_ROLE(bystander) {
  harness::Session session;
  const Memory memories[2] = {Memory(false), Memory(true)};
  std::unique_ptr<Half> half;
  for (;;) {
    const auto order = control.receive_value<Order>(600'000);
    switch (order.step) {
      case Step::kPrepare:
        half = std::make_unique<Half>(session, memories[order.plan.mapped], order.plan,
                                      Half::Part::kSurvivor);
        control.send_value(half->offer());
        break;
      case Step::kConnect:
        half->connect(order.offer);
        control.send_value(std::uint32_t{1});
        while (!readable(control)) half->pump();
        break;
      case Step::kEnd: {
        half->see_the_end(!order.plan.survivor_sleeps);
        half->close();
        const std::string complaints = half->complaints();
        half.reset();
        harness::Writer out;
        out.put(complaints);
        control.send(0, out.take());
        break;
      }
      case Step::kQuit:
        return 0;
    }
  }
}

}  // namespace verbatim::death
