// SPDX-License-Identifier: BSD-2-Clause
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "mpi_shim/core/pmi.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

[[gnu::format(printf, 2, 3)]] bool tell(PmiWire& wire, const char* format, ...) noexcept {
  char line[kPmiRoom];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof line) return false;
  return wire.write(line, static_cast<std::size_t>(length));
}

/// Reads lines until one says `cmd=<command>`. A launcher that says other things is heard out for
/// a while.
PmiWire::Got hear(PmiWire& wire, const char* command, char (&line)[kPmiRoom],
                  int milliseconds) noexcept {
  for (int others = 0; others < 16; ++others) {
    const PmiWire::Got got = wire.read_line(line, sizeof line, milliseconds);
    if (got != PmiWire::Got::kText) return got;
    char said[64];
    if (find_value(line, "cmd", ' ', said, sizeof said) && std::strcmp(said, command) == 0)
      return got;
  }
  return PmiWire::Got::kGone;
}

/// The answer to what was asked.
bool await(PmiWire& wire, const char* command, char (&line)[kPmiRoom]) noexcept {
  const bool is_here = hear(wire, command, line, wire.patience_ms()) == PmiWire::Got::kText;
  if (!is_here) wire.give_up();
  return is_here;
}

bool ask(PmiWire& wire, const char* request, const char* answer, char (&line)[kPmiRoom]) noexcept {
  return tell(wire, "cmd=%s\n", request) && await(wire, answer, line);
}

bool is_refused(const char* line) noexcept {
  long code = 0;
  return find_number(line, "rc", ' ', -1'000'000, 1'000'000, code) && code != 0;
}

/// Who came by PMI_PORT says its number and is told what others find in PMI_RANK and PMI_SIZE.
const char* say_who_we_are(PmiWire& wire, World& world) noexcept {
  char line[kPmiRoom];
  char request[64];
  (void)std::snprintf(request, sizeof request, "initack pmiid=%d", pmi_id);
  if (!ask(wire, request, "initack", line)) return "the launcher at PMI_PORT does not answer";
  long size = -1;
  long rank = -1;
  for (int i = 0; i < 3; ++i) {
    if (!await(wire, "set", line))
      return "the launcher at PMI_PORT does not say which rank this is";
    (void)find_number(line, "size", ' ', 1, 1 << 20, size);
    (void)find_number(line, "rank", ' ', 0, 1 << 20, rank);
  }
  if (size < 1 || rank < 0 || rank >= size)
    return "the launcher at PMI_PORT says a rank that is not within its size";
  world.size = static_cast<int>(size);
  world.rank = static_cast<int>(rank);
  return nullptr;
}

const char* begin(PmiWire& wire, World& world) noexcept {
  char line[kPmiRoom];
  if (pmi_id >= 0) {
    const char* const reason = say_who_we_are(wire, world);
    if (reason != nullptr) return reason;
  }
  if (!ask(wire, "init pmi_version=1 pmi_subversion=1", "response_to_init", line))
    return "the launcher behind PMI_FD does not answer";
  if (is_refused(line)) return "the launcher refuses version 1.1 of PMI";
  if (!ask(wire, "get_my_kvsname", "my_kvsname", line))
    return "the launcher does not name its key-value space";
  char name[256];
  if (!find_value(line, "kvsname", ' ', name, sizeof name) || name[0] == '\0')
    return "the launcher's key-value space has no name";
  set_job_name(name);
  long number = 0;
  if (ask(wire, "get_appnum", "appnum", line) &&
      find_number(line, "appnum", ' ', -1, 1 << 20, number))
    world.app_number = number < 0 ? 0 : static_cast<int>(number);
  if (ask(wire, "get_universe_size", "universe_size", line) &&
      find_number(line, "size", ' ', 1, 1 << 20, number))
    world.universe_size = static_cast<int>(number);
  return nullptr;
}

bool put(PmiWire& wire, const char* key, const char* value) noexcept {
  char line[kPmiRoom];
  return tell(wire, "cmd=put kvsname=%s key=%s value=%s\n", job_name(), key, value) &&
         await(wire, "put_result", line) && !is_refused(line);
}

KeyAnswer get(PmiWire& wire, const char* key, char* value, std::size_t room) noexcept {
  char line[kPmiRoom];
  if (!tell(wire, "cmd=get kvsname=%s key=%s\n", job_name(), key) ||
      !await(wire, "get_result", line))
    return KeyAnswer::kSilence;
  return !is_refused(line) && find_value(line, "value", ' ', value, room) ? KeyAnswer::kValue
                                                                          : KeyAnswer::kNoSuchKey;
}

KeyAnswer get_mapping(PmiWire& wire, char* value, std::size_t room) noexcept {
  return get(wire, "PMI_process_mapping", value, room);
}

bool enter_barrier(PmiWire& wire) noexcept { return tell(wire, "cmd=barrier_in\n"); }

PmiWire::Got leave_barrier(PmiWire& wire, int milliseconds) noexcept {
  char line[kPmiRoom];
  return hear(wire, "barrier_out", line, milliseconds);
}

void finalize(PmiWire& wire) noexcept {
  char line[kPmiRoom];
  (void)ask(wire, "finalize", "finalize_ack", line);
}

void abort(PmiWire& wire, int code, const char*) noexcept {
  (void)tell(wire, "cmd=abort exitcode=%d\n", code);
}

}  // namespace

const PmiProtocol pmi1 = {begin,         put,           get,      get_mapping,
                          enter_barrier, leave_barrier, finalize, abort};

}  // namespace vmpi
