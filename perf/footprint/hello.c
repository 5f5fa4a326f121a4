// SPDX-License-Identifier: BSD-2-Clause
// The program that first_message is compared with: two processes, one message over the socket
// between them, no verbs.
//
//   hello a|b        fd 3: the supervisor; fd 4: the other process
//
// `b` reports one byte once it has the message; both report one byte when they are idle, and leave
// when the supervisor closes.
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kSupervisor = 3, kPeer = 4 };

int main(int argc, char** argv) {
  uint64_t message = 42;
  char byte = 'm';
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 2) return 2;
  if (argv[1][0] == 'a') {
    if (send(kPeer, &message, sizeof message, 0) != sizeof message) return 1;
  } else {
    if (recv(kPeer, &message, sizeof message, 0) != sizeof message) return 1;
    if (send(kSupervisor, &byte, 1, 0) != 1) return 1;
  }
  byte = 'i';
  if (send(kSupervisor, &byte, 1, 0) != 1) return 1;
  return recv(kSupervisor, &byte, 1, 0) == 0 ? 0 : 1;
}
