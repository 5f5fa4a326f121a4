// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/hosts.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <strings.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>

namespace verbatim::cli {
namespace {

constexpr std::string_view kBlank = " \t\r\f\v";

/// Cuts the next word off `line`; empty when there is none.
std::string_view next_word(std::string_view* line) {
  const std::size_t begin = line->find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return *line = {};
  line->remove_prefix(begin);
  const std::string_view word = line->substr(0, line->find_first_of(kBlank));
  line->remove_prefix(word.size());
  return word;
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// The zone of fe80::1%eth0 or fe80::1%2; 0 when there is no such interface.
unsigned zone_index(const std::string& zone) {
  if (const unsigned index = if_nametoindex(zone.c_str()); index != 0) return index;
  char* end = nullptr;
  const unsigned long number = std::strtoul(zone.c_str(), &end, 10);
  return *end == '\0' && number <= UINT32_MAX ? static_cast<unsigned>(number) : 0;
}

std::optional<SocketAddress> numeric(std::string_view word, std::uint16_t port) {
  SocketAddress address;
  std::memset(&address, 0, sizeof(address));
  const std::size_t percent = word.find('%');
  const std::string digits(word.substr(0, percent));
  if (percent == std::string_view::npos &&
      inet_pton(AF_INET, digits.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    address.size = sizeof(address.v4);
    return address;
  }
  if (inet_pton(AF_INET6, digits.c_str(), &address.v6.sin6_addr) != 1) return {};
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons(port);
  address.size = sizeof(address.v6);
  if (percent != std::string_view::npos) {
    address.v6.sin6_scope_id = zone_index(std::string(word.substr(percent + 1)));
    if (address.v6.sin6_scope_id == 0) return {};
  }
  return address;
}

}  // namespace

std::string SocketAddress::text() const {
  char digits[INET6_ADDRSTRLEN] = "?";
  if (any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &v4.sin_addr, digits, sizeof(digits));
    return digits;
  }
  // A dual-stack socket shows an IPv4 peer as ::ffff:a.b.c.d; people know it as a.b.c.d.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], digits, sizeof(digits));
    return digits;
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, digits, sizeof(digits));
  std::string whole = digits;
  char zone[IF_NAMESIZE];
  if (v6.sin6_scope_id != 0 && if_indextoname(v6.sin6_scope_id, zone) != nullptr) {
    whole.append("%").append(zone);
  }
  return whole;
}

std::vector<SocketAddress> find_host(std::string_view host, std::uint16_t port,
                                     std::string_view hosts_file) {
  std::vector<SocketAddress> found;
  if (const auto address = numeric(host, port)) {
    found.push_back(*address);
    return found;
  }
  while (!hosts_file.empty()) {
    std::string_view line = hosts_file.substr(0, hosts_file.find('\n'));
    hosts_file.remove_prefix(line.size() < hosts_file.size() ? line.size() + 1 : line.size());
    line = line.substr(0, line.find('#'));
    const std::string_view first = next_word(&line);
    for (std::string_view name = next_word(&line); !name.empty(); name = next_word(&line)) {
      if (!same_name(name, host)) continue;
      if (const auto address = numeric(first, port)) found.push_back(*address);
      break;
    }
  }
  if (found.empty() && same_name(host, "localhost")) {  // RFC 6761 6.3: never anything else
    found.push_back(*numeric("127.0.0.1", port));
    found.push_back(*numeric("::1", port));
  }
  return found;
}

std::string read_hosts_file() {
  std::string text;
  const int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char chunk[4096];
  ssize_t got;
  while ((got = read(fd, chunk, sizeof(chunk))) > 0) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  close(fd);
  return text;
}

}  // namespace verbatim::cli
