// SPDX-License-Identifier: BSD-2-Clause
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/pmi.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

[[gnu::format(printf, 2, 3)]] bool tell(PmiWire& wire, const char* format, ...) noexcept {
  char record[kPmiRoom];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(record + 6, sizeof record - 6, format, arguments);
  va_end(arguments);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof record - 6) return false;
  char digits[16];
  (void)std::snprintf(digits, sizeof digits, "%6d", length);
  std::memcpy(record, digits, 6);
  return wire.write(record, 6 + static_cast<std::size_t>(length));
}

PmiWire::Got hear(PmiWire& wire, const char* command, char (&record)[kPmiRoom],
                  int milliseconds) noexcept {
  for (int others = 0; others < 16; ++others) {
    const PmiWire::Got got = wire.read_record(record, sizeof record, milliseconds);
    if (got != PmiWire::Got::kText) return got;
    char said[64];
    if (find_value(record, "cmd", ';', said, sizeof said) && std::strcmp(said, command) == 0)
      return got;
  }
  return PmiWire::Got::kGone;
}

bool is_granted(PmiWire& wire, const char* answer, char (&record)[kPmiRoom]) noexcept {
  if (hear(wire, answer, record, wire.patience_ms()) != PmiWire::Got::kText) {
    wire.give_up();
    return false;
  }
  long code = -1;
  return find_number(record, "rc", ';', -1'000'000, 1'000'000, code) && code == 0;
}

const char* begin(PmiWire& wire, World& world) noexcept {
  char record[kPmiRoom];
  // The first exchange is a line, in which both agree on the version.
  constexpr char kHello[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
  if (!wire.write(kHello, sizeof kHello - 1) ||
      wire.read_line(record, sizeof record, wire.patience_ms()) != PmiWire::Got::kText)
    return "the launcher behind PMI_FD does not answer";
  long version = 0;
  if (!find_number(record, "pmi_version", ' ', 0, 100, version) || version != 2)
    return "the launcher refuses version 2.0 of PMI";
  const char* const job = std::getenv("PMI_JOBID");
  char name[256];
  (void)std::snprintf(name, sizeof name, "%s", job != nullptr ? job : "job");
  set_job_name(name);
  if (!tell(wire, "cmd=fullinit;pmijobid=%s;pmirank=%d;threaded=FALSE;", name, world.rank) ||
      !is_granted(wire, "fullinit-response", record))
    return "the launcher refuses this process (PMI-2, fullinit)";
  long rank = -1;
  long size = -1;
  long number = 0;
  if (!find_number(record, "rank", ';', 0, 1 << 20, rank) ||
      !find_number(record, "size", ';', 1, 1 << 20, size) || rank >= size)
    return "the launcher says a rank that is not within its size (PMI-2, fullinit)";
  world.rank = static_cast<int>(rank);
  world.size = static_cast<int>(size);
  if (find_number(record, "appnum", ';', 0, 1 << 20, number))
    world.app_number = static_cast<int>(number);
  if (tell(wire, "cmd=info-getjobattr;key=universeSize;") &&
      is_granted(wire, "info-getjobattr-response", record) &&
      find_number(record, "value", ';', 1, 1 << 20, number))
    world.universe_size = static_cast<int>(number);
  return nullptr;
}

bool put(PmiWire& wire, const char* key, const char* value) noexcept {
  char record[kPmiRoom];
  return tell(wire, "cmd=kvs-put;key=%s;value=%s;", key, value) &&
         is_granted(wire, "kvs-put-response", record);
}

/// What was asked for is in `record`, if the launcher has it.
KeyAnswer take_value(PmiWire& wire, const char* answer, char (&record)[kPmiRoom], char* value,
                     std::size_t room) noexcept {
  if (!is_granted(wire, answer, record))
    return wire.is_given_up() ? KeyAnswer::kSilence : KeyAnswer::kNoSuchKey;
  char found[8];
  const bool is_there = find_value(record, "found", ';', found, sizeof found) &&
                        std::strcmp(found, "TRUE") == 0 &&
                        find_value(record, "value", ';', value, room);
  return is_there ? KeyAnswer::kValue : KeyAnswer::kNoSuchKey;
}

KeyAnswer get(PmiWire& wire, const char* key, char* value, std::size_t room) noexcept {
  char record[kPmiRoom];
  return tell(wire, "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", job_name(), key)
             ? take_value(wire, "kvs-get-response", record, value, room)
             : KeyAnswer::kSilence;
}

KeyAnswer get_mapping(PmiWire& wire, char* value, std::size_t room) noexcept {
  char record[kPmiRoom];
  return tell(wire, "cmd=info-getjobattr;key=PMI_process_mapping;")
             ? take_value(wire, "info-getjobattr-response", record, value, room)
             : KeyAnswer::kSilence;
}

bool enter_barrier(PmiWire& wire) noexcept { return tell(wire, "cmd=kvs-fence;"); }

PmiWire::Got leave_barrier(PmiWire& wire, int milliseconds) noexcept {
  char record[kPmiRoom];
  const PmiWire::Got got = hear(wire, "kvs-fence-response", record, milliseconds);
  if (got != PmiWire::Got::kText) return got;
  long code = -1;
  return find_number(record, "rc", ';', -1'000'000, 1'000'000, code) && code == 0
             ? got
             : PmiWire::Got::kGone;
}

void finalize(PmiWire& wire) noexcept {
  char record[kPmiRoom];
  if (tell(wire, "cmd=finalize;")) (void)is_granted(wire, "finalize-response", record);
}

void abort(PmiWire& wire, int, const char* message) noexcept {
  // ';' separates: it may not stand in the text.
  char text[256];
  (void)std::snprintf(text, sizeof text, "%s", message != nullptr ? message : "");
  for (char* at = text; *at != '\0'; ++at)
    if (*at == ';' || *at == '\n') *at = ',';
  (void)tell(wire, "cmd=abort;isworld=TRUE;msg=%s;", text);
}

}  // namespace

const PmiProtocol pmi2 = {begin,         put,           get,      get_mapping,
                          enter_barrier, leave_barrier, finalize, abort};

}  // namespace vmpi
