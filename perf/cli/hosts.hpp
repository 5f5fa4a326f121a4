// SPDX-License-Identifier: BSD-2-Clause
// Host names without a resolver: numeric addresses, the hosts file, and `localhost`.
//
// A static glibc answers getaddrinfo only with the help of shared NSS modules, so the static tool
// does not ask it: names in DNS are out of reach, on purpose, and the caller says so. Any thread.
// File format: hosts(5).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::cli {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size;

  /// "192.0.2.1" or "fe80::1%eth0", without the port.
  std::string text() const;
};

/// The addresses of `host` in the order in which they should be tried; none when it is neither
/// numeric nor named in `hosts_file` (the text of a hosts file).
std::vector<SocketAddress> find_host(std::string_view host, std::uint16_t port,
                                     std::string_view hosts_file);

/// The text of /etc/hosts; empty when it cannot be read.
std::string read_hosts_file();

}  // namespace verbatim::cli
