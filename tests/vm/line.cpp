// SPDX-License-Identifier: BSD-2-Clause
// What goes over a line between rxe0 and rxe1, and what a device tells of its line, for
// line_test.sh.
//
//   line numbers COUNT whole|lossy     so many messages of each kind, both ways
//   line gids ipv4|ipv6|link           both ends pick addresses of that kind, and what is sent
//                                      between those arrives
//   line events DEVICE FILE            writes the device's events into FILE as they come, until
//                                      PORT_ERR and then PORT_ACTIVE have
//
// What is wrong is said on stderr, and the status is 1.
#include <poll.h>
#include <verbatim/gid.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/vm/line_end.hpp"
#include "tests/vm/line_numbers.hpp"

namespace verbatim::vm {
namespace {

std::string_view kind_of(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0) return "ipv4";
  return gid.raw[0] == 0xfe && gid.raw[1] == 0x80 ? "link" : "ipv6";
}

int numbers(std::uint64_t count, bool whole) {
  sends(count);
  writes_with_immediate(count);
  additions(count);
  reads(count);
  datagrams(100, whole);
  return 0;
}

int gids(std::string_view kind) {
  {
    const LineDevice a("rxe0");
    const LineDevice b("rxe1");
    const ibv_gid_entry own = a.pick(nullptr);
    need(kind_of(own.gid) == kind, "picked: " + std::string(kind_of(own.gid)));
    need(own.gid_type == IBV_GID_TYPE_ROCE_V2, "not of RoCE v2");
    // Whatever the other side tells, the answer is of its kind and in the table.
    ibv_gid_entry theirs[64];
    ibv_gid_entry ours[64];
    const ssize_t count = ibv_query_gid_table(b.context(), theirs, 64, 0);
    const ssize_t rows = ibv_query_gid_table(a.context(), ours, 64, 0);
    need(count > 0 && rows > 0, "ibv_query_gid_table");
    for (ssize_t i = 0; i < count; ++i) {
      const ibv_gid_entry answer = a.pick(&theirs[i].gid);
      need(kind_of(answer.gid) == kind_of(theirs[i].gid), "an answer of another kind");
      ssize_t row = 0;
      while (row < rows && ours[row].gid_index != answer.gid_index) ++row;
      need(row < rows && std::memcmp(&ours[row], &answer, sizeof answer) == 0,
           "the answer is no row of the table");
    }
  }
  sends(20);
  datagrams(20, true);
  return 0;
}

int events(const char* device, const char* path) {
  constexpr int kPatience = 60000;
  const LineDevice watched(device);
  std::FILE* const out = std::fopen(path, "w");
  need(out != nullptr, "cannot write");
  std::fputs("watching\n", out);
  bool failed = false;
  for (bool active_again = false; !active_again;) {
    std::fflush(out);
    pollfd ready{watched.context()->async_fd, POLLIN, 0};
    need(::poll(&ready, 1, kPatience) == 1, "no event came");
    ibv_async_event event{};
    need(ibv_get_async_event(watched.context(), &event) == 0, "ibv_get_async_event");
    need(event.element.port_num == 1, "an event of another port");
    std::fprintf(out, "%s\n", ibv_event_type_str(event.event_type));
    ibv_port_attr port{};
    need(ibv_query_port(watched.context(), 1, &port) == 0, "ibv_query_port");
    if (event.event_type == IBV_EVENT_PORT_ERR) failed = true;
    active_again = failed && event.event_type == IBV_EVENT_PORT_ACTIVE;
    if (active_again) need(port.state == IBV_PORT_ACTIVE, "the port is not active");
    ibv_ack_async_event(&event);
  }
  std::fclose(out);
  return 0;
}

}  // namespace
}  // namespace verbatim::vm

int main(int count, char** arguments) {
  using namespace verbatim::vm;
  const std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "numbers" && count == 4)
    return numbers(std::strtoull(arguments[2], nullptr, 10),
                   std::string_view(arguments[3]) == "whole");
  if (what == "gids" && count == 3) return gids(arguments[2]);
  if (what == "events" && count == 4) return events(arguments[2], arguments[3]);
  fail("see the head of tests/vm/line.cpp");
}
