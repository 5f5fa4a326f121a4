// SPDX-License-Identifier: BSD-2-Clause
// Puts the line together: both ends, the request, its status, and the cause in the words of
// error_text.hpp. A completion that was flushed is explained by the failure that came first.
#include "runtime/verbs/explain.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/base/printable.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/error_text.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/qp_words.hpp"

namespace verbatim {
namespace {

void add_program(TextLine& line, const ProgramName& program) noexcept {
  if (program.pid > 0) line.add("process %d", program.pid);
  if (program.name[0] != 0)
    line.add("%s%.*s", program.pid > 0 ? " " : "", static_cast<int>(sizeof program.name),
             program.name);
}

/// Adds the process in parentheses, if anything is known of it.
void add_owner(TextLine& line, const ProgramName& program) noexcept {
  if (program.pid == 0 && program.name[0] == 0) return;
  line.add(" (");
  add_program(line, program);
  line.add(")");
}

/// " at GID fe80::1", " to 10.0.0.2 port 4711".
void add_place(TextLine& line, const Failure& failure) noexcept {
  const RemotePlace& place = failure.place;
  if (place.kind == RemotePlace::Kind::kUnknown) return;
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_socket = place.kind == RemotePlace::Kind::kSocket;
  // A GID is written as sysfs and its users do, whatever lies in it.
  const bool is_ipv4 = is_socket && std::memcmp(place.gid.raw, kMapped, sizeof kMapped) == 0;
  char text[INET6_ADDRSTRLEN] = {};
  if (is_ipv4)
    ::inet_ntop(AF_INET, place.gid.raw + sizeof kMapped, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, place.gid.raw, text, sizeof text);
  line.add("%s%s%s", failure.remote_qpn != 0 ? " at " : " to ", is_socket ? "" : "GID ", text);
  if (is_socket) line.add(" port %u", place.port);
}

void add_ends(TextLine& line, const OwnEnd& end, const Failure& failure) noexcept {
  const ProgramName own = printable_name(::getpid(), program_invocation_short_name, NAME_MAX);
  if (failure.over_qpn != 0) {
    line.add("XRC SRQ 0x%06x", failure.srqn);
    add_owner(line, own);
    line.add(" by QP 0x%06x", failure.over_qpn);
  } else {
    line.add("QP 0x%06x (%s, ", end.qpn, qp_type_word(end.type));
    add_program(line, own);
    if (failure.own_state >= 0)
      line.add(", state %s", qp_state_word(static_cast<std::uint32_t>(failure.own_state)));
    line.add(")");
  }
  if (failure.remote_qpn != 0) line.add(" to QP 0x%06x", failure.remote_qpn);
  add_place(line, failure);
  if (failure.remote_qpn == 0) return;
  add_owner(line, failure.remote);
  if (failure.srqn == 0 || failure.over_qpn != 0) return;
  line.add("%s XRC SRQ 0x%06x", failure.receives ? ", for" : " for", failure.srqn);
  add_owner(line, failure.queue);
}

void add_request(TextLine& line, const Failure& failure) noexcept {
  const char* const opcode = opcode_word(failure.opcode);
  if (!failure.receives) {
    line.add("%s", opcode == nullptr ? "a request" : opcode);
  } else if (opcode != nullptr) {
    line.add("the peer's %s", opcode);
  } else {
    line.add("a receive");
  }
  if (failure.has_request) line.add(", wr_id %llu", static_cast<unsigned long long>(failure.wr_id));
}

const char* status_word(ibv_wc_status status) noexcept {
  return status == IBV_WC_WR_FLUSH_ERR ? "flushed" : ::ibv_wc_status_str(status);
}

/// Whether `completion` is the failure's own, as far as can be told.
bool is_about(const Failure& failure, const FailedCompletion& completion) noexcept {
  return completion.status == failure.status &&
         (!failure.has_request || completion.wr_id == failure.wr_id);
}

}  // namespace

ProgramName printable_name(std::int32_t pid, const char* name, std::size_t most) noexcept {
  ProgramName program;
  program.pid = pid;
  const std::size_t length = ::strnlen(name, std::min(most, sizeof program.name - 1));
  std::memcpy(program.name, name, length);
  make_printable_name(program.name, length);
  return program;
}

std::size_t describe_failure(const OwnEnd& own, const Failure& failure,
                             const FailedCompletion* completion, char* text,
                             std::size_t size) noexcept {
  TextLine line(text, size);
  add_ends(line, own, failure);
  line.add(": ");
  if (completion != nullptr &&
      (failure.cause == Cause::kOrdered || !is_about(failure, *completion))) {
    line.add("wr_id %llu: %s: ", static_cast<unsigned long long>(completion->wr_id),
             status_word(completion->status));
    if (failure.cause != Cause::kOrdered) line.add("what came first: ");
  } else if (completion != nullptr && !failure.has_request) {
    line.add("wr_id %llu: ", static_cast<unsigned long long>(completion->wr_id));
  }
  if (failure.cause != Cause::kOrdered) {
    if (failure.has_request || failure.opcode >= 0) {
      add_request(line, failure);
      line.add(": ");
    }
    line.add("%s", status_word(failure.status));
    if (failure.vendor_err >= 0)
      line.add(" (vendor_err %lld)", static_cast<long long>(failure.vendor_err));
    line.add(": ");
  }
  add_cause(line, failure);
  return line.length();
}

int explain(Qp& qp, const FailedCompletion* completion, char* text, std::size_t size) noexcept {
  if (completion != nullptr && completion->status == IBV_WC_SUCCESS) return -ENODATA;
  Failure failure;
  const int error = table_of(qp).explain_qp(qp, completion, failure);
  if (error != 0) {
    // The provider keeps no such facts, or was not there when it failed: what the status says.
    if (completion == nullptr) return -error;
    failure = Failure{};
    failure.status = completion->status;
    failure.wr_id = completion->wr_id;
    failure.has_request = true;
    failure.remote_qpn = qp.attributes.dest_qp_num;
  }
  const std::size_t length = describe_failure(qp, failure, completion, text, size);
  return length > INT_MAX ? -EOVERFLOW : static_cast<int>(length);
}

}  // namespace verbatim
