// SPDX-License-Identifier: BSD-2-Clause
//
// A queue pair whose peer lies in every word: the ring that messages are taken from, and the
// credits, answers and descriptors that sending relies on. The application posts and polls in
// between.
#include "tests/fuzz/liar.hpp"
#include "tests/fuzz/victim.hpp"

namespace verbatim::fuzz {
namespace {

struct Scene {
  Stranger stranger{0x5ca1ab1e, 0xfa0};
  Victim victim{stranger};
};

Scene& scene() {
  static Scene* const made = new Scene;  // for the process: the peer's memory outlives everything
  return *made;
}

}  // namespace

void run_one(Bytes bytes) {
  auto& [stranger, victim] = scene();
  Input input(bytes);
  const Target target = victim.target();
  Liar liar(stranger, 0, target);
  stranger.restore();
  liar.be_ready();
  victim.begin();
  liar.connect();
  victim.go();
  for (int steps = 0; !input.empty() && steps < 200; ++steps) {
    switch (input.below(8)) {
      case 0:
        victim.post_receive(input);
        break;
      case 1:
        victim.post_send(input);
        break;
      case 2:
        victim.poll();
        break;
      case 3:
        if (input.below(4) == 0)
          victim.arm(input.flag());
        else
          victim.serve();
        break;
      default:
        if (liar.act(input)) victim.serve();
        break;
    }
  }
  victim.end();
}

}  // namespace verbatim::fuzz
