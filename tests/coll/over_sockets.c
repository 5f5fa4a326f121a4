// SPDX-License-Identifier: BSD-2-Clause
// A team in plain C (C99), as a program without MPI makes one: its members are processes that were
// forked, and have a socket to the first of them each.
//
//   coll_over_sockets [DEVICE ...]     they go by these in turn: rxe0 rxe1, as if on two hosts
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbatim/coll.h>

enum { kMembers = 4, kLong = 100000 };

static int32_t longer[kLong], results[kLong];

struct sockets {
  uint32_t rank;
  int to[kMembers];  // of the first to each other; of each other to[0] to the first
};

static int say(int fd, const void* bytes, size_t length) {
  return write(fd, bytes, length) == (ssize_t)length ? 0 : -1;
}

static int hear(int fd, void* bytes, size_t length) {
  char* at = bytes;
  while (length != 0) {
    const ssize_t got = read(fd, at, length);
    if (got <= 0) return -1;
    at += got;
    length -= (size_t)got;
  }
  return 0;
}

/// Each tells the first, who tells all.
static int exchange(void* context, const void* mine, void* all, size_t bytes) {
  const struct sockets* sockets = context;
  int wrong = 0;
  if (sockets->rank != 0)
    return say(sockets->to[0], mine, bytes) != 0 || hear(sockets->to[0], all, kMembers * bytes) != 0
               ? 5  // EIO
               : 0;
  memcpy(all, mine, bytes);
  for (int i = 1; i < kMembers; ++i)
    wrong |= hear(sockets->to[i], (char*)all + (size_t)i * bytes, bytes);
  for (int i = 1; i < kMembers; ++i) wrong |= say(sockets->to[i], all, kMembers * bytes);
  return wrong != 0 ? 5 : 0;
}

static int play(struct sockets* sockets, uint32_t devices, char** device) {
  if (devices != 0 && setenv("VERBATIM_MPI_DEVICE", device[sockets->rank % devices], 1) != 0)
    return 1;
  struct vbt_coll_team_attr attr = {0};
  struct vbt_coll_team* team = NULL;
  struct vbt_coll_request* request = NULL;
  attr.rank = sockets->rank;
  attr.size = kMembers;
  attr.exchange = exchange;
  attr.context = sockets;
  attr.timeout_ms = 20000;
  int error = vbt_coll_create_team(&attr, sizeof attr, &team);
  if (error != 0) {
    fprintf(stderr, "member %u: %d: %s\n", sockets->rank, error, vbt_coll_why());
    return 1;
  }
  double mine[100];
  double sums[100];
  int32_t ranks[kMembers];
  const int32_t rank = (int32_t)sockets->rank;
  for (int i = 0; i < 100; ++i) mine[i] = rank + i;
  error = vbt_coll_allreduce(team, mine, sums, 100, VBT_COLL_DOUBLE, VBT_COLL_SUM);
  for (int i = 0; error == 0 && i < 100; ++i)
    if (sums[i] != kMembers * (kMembers - 1) / 2 + kMembers * i) error = -1;
  if (error == 0) error = vbt_coll_iallgather(team, &rank, ranks, 1, VBT_COLL_INT32, &request);
  if (error == 0) error = vbt_coll_wait(&request);
  for (int i = 0; error == 0 && i < kMembers; ++i)
    if (ranks[i] != i) error = -1;
  // Long enough to go by other ways than short messages.
  for (int i = 0; i < kLong; ++i) longer[i] = rank * 3 + i;
  if (error == 0)
    error = vbt_coll_allreduce(team, longer, results, kLong, VBT_COLL_INT32, VBT_COLL_SUM);
  for (int i = 0; error == 0 && i < kLong; ++i)
    if (results[i] != 3 * kMembers * (kMembers - 1) / 2 + kMembers * i) error = -1;
  if (error == 0) error = vbt_coll_barrier(team);
  if (error == 0) error = vbt_coll_destroy_team(team);
  if (error != 0) fprintf(stderr, "member %u: %d: %s\n", sockets->rank, error, vbt_coll_why());
  return error != 0;
}

int main(int argc, char** argv) {
  struct sockets sockets = {0, {-1, -1, -1, -1}};
  for (int i = 1; i < kMembers; ++i) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      // What the first has to others is not this one's: it would not end with the first.
      for (int k = 1; k < i; ++k) close(sockets.to[k]);
      close(pair[0]);
      sockets.rank = (uint32_t)i;
      sockets.to[0] = pair[1];
      return play(&sockets, (uint32_t)argc - 1, argv + 1);
    }
    close(pair[1]);
    sockets.to[i] = pair[0];
  }
  int wrong = play(&sockets, (uint32_t)argc - 1, argv + 1);
  for (int i = 1; i < kMembers; ++i) close(sockets.to[i]);
  for (int i = 1; i < kMembers; ++i) {
    int status = 1;
    if (wait(&status) < 0 || status != 0) wrong = 1;
  }
  return wrong;
}
