/* SPDX-License-Identifier: BSD-2-Clause
 * Messages between ranks: MPI 5.0, chapter 3. */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "point_to_point.h"

static unsigned char pattern(long i, int seed) {
  return (unsigned char)(i * 131 + seed * 7 + (i >> 8));
}

static void fill(unsigned char* to, long bytes, int seed) {
  for (long i = 0; i < bytes; ++i) to[i] = pattern(i, seed);
}

static int is_filled(const unsigned char* from, long bytes, int seed) {
  for (long i = 0; i < bytes; ++i)
    if (from[i] != pattern(i, seed)) return 0;
  return 1;
}

static void barrier(void) {
  char token = 0;
  for (int step = 1; step < size; step *= 2)
    OK(MPI_Sendrecv(&token, 1, MPI_CHAR, (rank + step) % size, 9999, &token, 1, MPI_CHAR,
                    (rank - step + size) % size, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Every size around each threshold goes there and back unharmed, by Alloc_mem memory and malloc's. */
static void sizes(void) {
  static const int lengths[] = {0,    1,    8,    239,  240,   241,    256,     4096,   8167,
                                8168, 8169, 8192, 8193, 65536, 100001, 1 << 20, 5000011};
  for (int kind = 0; kind < 2; ++kind) {
    unsigned char* buffer = NULL;
    if (kind == 0)
      buffer = malloc(5000011);
    else
      OK(MPI_Alloc_mem(5000011, MPI_INFO_NULL, &buffer));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
      const int bytes = lengths[i];
      MPI_Status status;
      int count = -1;
      if (size == 1) {
        unsigned char* other = malloc((size_t)bytes + 1);
        fill(buffer, bytes, bytes);
        OK(MPI_Sendrecv(buffer, bytes, MPI_BYTE, 0, 1, other, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                        &status));
        CHECK(is_filled(other, bytes, bytes));
        free(other);
      } else if (rank == 0) {
        for (int peer = 1; peer < size; ++peer) {
          fill(buffer, bytes, peer);
          OK(MPI_Send(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
          memset(buffer, 0, (size_t)bytes);
          OK(MPI_Recv(buffer, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &status));
          CHECK(status.MPI_SOURCE == peer && status.MPI_TAG == 2);
          CHECK(is_filled(buffer, bytes, peer + 50));
        }
      } else {
        memset(buffer, 0, (size_t)bytes);
        OK(MPI_Recv(buffer, 5000011, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == bytes);
        CHECK(is_filled(buffer, bytes, rank));
        fill(buffer, bytes, rank + 50);
        OK(MPI_Ssend(buffer, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
      }
    }
    if (kind == 0)
      free(buffer);
    else
      OK(MPI_Free_mem(buffer));
  }
}

/* Messages of one tag arrive in the order of sending, whatever their lengths and modes. */
static void ordering(void) {
  enum { kMessages = 400 };
  static int big[20000];
  if (rank == 0) {
    for (int i = 0; i < kMessages * (size - 1); ++i) {
      MPI_Status status;
      OK(MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &status));
      int count = 0;
      OK(MPI_Get_count(&status, MPI_INT, &count));
      OK(MPI_Recv(big, count, MPI_INT, status.MPI_SOURCE, 4, MPI_COMM_WORLD, &status));
      static int next[64];
      CHECK(big[0] == next[status.MPI_SOURCE]);
      CHECK(big[count - 1] == big[0]);
      ++next[status.MPI_SOURCE];
    }
    return;
  }
  for (int i = 0; i < kMessages; ++i) {
    const int count = i % 7 == 0 ? 20000 : i % 3 == 0 ? 1000 : 1;
    big[0] = big[count - 1] = i;
    if (i % 5 == 0)
      OK(MPI_Ssend(big, count, MPI_INT, 0, 4, MPI_COMM_WORLD));
    else
      OK(MPI_Send(big, count, MPI_INT, 0, 4, MPI_COMM_WORLD));
  }
}

/* Of receives that match a message, the first posted one takes it, wildcard or not. */
static void wildcards(void) {
  if (rank == 0) {
    enum { kReceives = 6 };
    int values[kReceives];
    MPI_Request requests[kReceives];
    MPI_Status statuses[kReceives];
    for (int source = 1; source < size; ++source) {
      const int sources[kReceives] = {MPI_ANY_SOURCE, source, MPI_ANY_SOURCE,
                                      source,         source, MPI_ANY_SOURCE};
      const int tags[kReceives] = {5, MPI_ANY_TAG, MPI_ANY_TAG, 5, MPI_ANY_TAG, 6};
      for (int i = 0; i < kReceives; ++i)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, sources[i], tags[i], MPI_COMM_WORLD, &requests[i]));
      OK(MPI_Send(NULL, 0, MPI_INT, source, 1, MPI_COMM_WORLD));
      OK(MPI_Waitall(kReceives, requests, statuses));
      /* Sent: 6 (tag 6), then 0, 1, 2, 3 with tag 5, then one with tag 6. */
      const int expected[kReceives] = {0, 100, 1, 2, 3, 101};
      for (int i = 0; i < kReceives; ++i) {
        CHECK(values[i] == expected[i]);
        CHECK(statuses[i].MPI_SOURCE == source);
        CHECK(statuses[i].MPI_TAG == (expected[i] >= 100 ? 6 : 5));
        CHECK(requests[i] == MPI_REQUEST_NULL);
      }
    }
  } else {
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const int values[] = {100, 0, 1, 2, 3, 101};
    for (int i = 0; i < 6; ++i)
      OK(MPI_Send(&values[i], 1, MPI_INT, 0, values[i] >= 100 ? 6 : 5, MPI_COMM_WORLD));
  }
}

/* Many unexpected messages are received in the reverse order, by tag. */
static void reverse_order(long messages) {
  int* values = malloc(sizeof(int) * (size_t)messages);
  if (rank == 0) {
    for (int source = 1; source < size; ++source)
      for (long i = messages; i-- > 0;) {
        int value = -1;
        OK(MPI_Recv(&value, 1, MPI_INT, source, (int)i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == (int)i * 3 + source);
      }
  } else {
    MPI_Request* requests = malloc(sizeof(MPI_Request) * (size_t)messages);
    for (long i = 0; i < messages; ++i) {
      values[i] = (int)i * 3 + rank;
      OK(MPI_Isend(&values[i], 1, MPI_INT, 0, (int)i, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE));
    free(requests);
  }
  free(values);
}
static void unexpected(void) { reverse_order(5000); }
static void million(void) { reverse_order(1000000); }

/* A message that is too long fills the receive and ends it with MPI_ERR_TRUNCATE. */
static void truncation(void) {
  static const int lengths[] = {2, 100, 2000, 30000, 300000};
  static int buffer[300000];
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const int partner = size == 1 ? 0 : rank ^ 1;
  if (partner >= size) return;
  for (int i = 0; i < 5; ++i) {
    for (int is_posted = 0; is_posted < 2; ++is_posted) {
      MPI_Request send, receive;
      static int own[300000];
      memset(own, 0, sizeof own);
      for (int k = 0; k < lengths[i]; ++k) buffer[k] = k + 1;
      if (is_posted)
        OK(MPI_Irecv(own, lengths[i] / 2, MPI_INT, partner, 3, MPI_COMM_WORLD, &receive));
      OK(MPI_Isend(buffer, lengths[i], MPI_INT, partner, 3, MPI_COMM_WORLD, &send));
      if (!is_posted)
        OK(MPI_Irecv(own, lengths[i] / 2, MPI_INT, partner, 3, MPI_COMM_WORLD, &receive));
      MPI_Status status;
      CHECK(MPI_Wait(&receive, &status) == MPI_ERR_TRUNCATE);
      CHECK(receive == MPI_REQUEST_NULL && status.MPI_TAG == 3);
      OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
      CHECK(own[lengths[i] / 2 - 1] == lengths[i] / 2 && own[lengths[i] / 2] == 0);
    }
  }
}

/* A synchronous send is not complete before its receive is there. */
static void synchronous(void) {
  const int partner = size == 1 ? 0 : rank ^ 1;
  if (partner >= size) return;
  static char text[20000];
  for (int bytes = 1; bytes < 20000; bytes = bytes * 10 + 1) {
    MPI_Request send;
    int flag = -1;
    OK(MPI_Issend(text, bytes, MPI_CHAR, partner, 2, MPI_COMM_WORLD, &send));
    for (int i = 0; i < 200; ++i) {
      OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
    }
    /* What the partner says the second time it says when the message has come, and the third time
       both have looked. */
    for (int round = 0; round < 3 && size > 1; ++round) {
      if (round == 2) OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
      OK(MPI_Sendrecv(NULL, 0, MPI_INT, partner, 8, NULL, 0, MPI_INT, partner, 8, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    }
    OK(MPI_Recv(text, bytes, MPI_CHAR, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
}

/* Requests: any, some, all, test, free, inactive ones, cancelled ones. */
static void requests(void) {
  enum { kCount = 8 };
  int out[kCount], in[kCount], indices[kCount], index, flag, done;
  MPI_Request sends[kCount], receives[kCount];
  MPI_Status status, statuses[kCount];
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < kCount; ++i) {
      out[i] = 1000 * round + i;
      in[i] = -1;
      OK(MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &receives[i]));
    }
    for (int i = 0; i < kCount; ++i)
      OK(MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &sends[i]));
    for (done = 0; done < kCount;) {
      int count = 0;
      switch (round) {
        case 0:
          OK(MPI_Waitany(kCount, receives, &index, &status));
          CHECK(status.MPI_TAG == index && in[index] == index);
          ++done;
          break;
        case 1:
          OK(MPI_Waitsome(kCount, receives, &count, indices, statuses));
          CHECK(count >= 1);
          for (int i = 0; i < count; ++i) CHECK(statuses[i].MPI_TAG == indices[i]);
          done += count;
          break;
        case 2:
          OK(MPI_Testall(kCount, receives, &flag, statuses));
          if (flag) done = kCount;
          break;
        case 3:
          OK(MPI_Testsome(kCount, receives, &count, indices, statuses));
          CHECK(count != MPI_UNDEFINED);
          done += count;
          break;
        case 4:
          OK(MPI_Testany(kCount, receives, &index, &flag, &status));
          if (flag) CHECK(index != MPI_UNDEFINED && status.MPI_TAG == index);
          done += flag;
          break;
        default:
          OK(MPI_Request_get_status(receives[done], &flag, &status));
          if (!flag) break;
          CHECK(receives[done] != MPI_REQUEST_NULL);
          OK(MPI_Wait(&receives[done], &status));
          CHECK(status.MPI_TAG == done);
          ++done;
      }
    }
    for (int i = 0; i < kCount; ++i) CHECK(in[i] == out[i] && receives[i] == MPI_REQUEST_NULL);
    OK(MPI_Waitany(kCount, receives, &index, &status));
    CHECK(index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE);
    OK(MPI_Waitsome(kCount, receives, &done, indices, statuses));
    CHECK(done == MPI_UNDEFINED);
    OK(MPI_Testall(kCount, receives, &flag, statuses));
    CHECK(flag);
    if (round % 2 == 0)
      OK(MPI_Waitall(kCount, sends, MPI_STATUSES_IGNORE));
    else
      for (int i = 0; i < kCount; ++i) OK(MPI_Request_free(&sends[i]));
    barrier();
  }
  OK(MPI_Irecv(in, 1, MPI_INT, previous, 77, MPI_COMM_WORLD, &receives[0]));
  OK(MPI_Cancel(&receives[0]));
  OK(MPI_Wait(&receives[0], &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(flag);
  OK(MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 77, MPI_COMM_WORLD, &receives[0]));
  OK(MPI_Wait(&receives[0], &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  OK(MPI_Send(in, 1, MPI_INT, MPI_PROC_NULL, 77, MPI_COMM_WORLD));
}

/* Persistent requests start again and again, with what the buffer holds then. */
static void persistent(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  int out = 0, in = -1;
  MPI_Request pair[2];
  OK(MPI_Recv_init(&in, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &pair[0]));
  OK(MPI_Send_init(&out, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &pair[1]));
  for (int i = 0; i < 300; ++i) {
    out = i * size + rank;
    OK(MPI_Startall(2, pair));
    OK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
    CHECK(in == i * size + previous && pair[0] != MPI_REQUEST_NULL);
  }
  OK(MPI_Request_free(&pair[0]));
  OK(MPI_Request_free(&pair[1]));
  CHECK(pair[0] == MPI_REQUEST_NULL);
}

/* A buffered send returns before its receive is there; detaching waits. */
static void buffered(void) {
  enum { kBytes = 30000, kCount = 6 };
  const int partner = size == 1 ? 0 : rank ^ 1;
  if (partner >= size) return;
  const int room = kCount * (kBytes + MPI_BSEND_OVERHEAD);
  void* memory = malloc((size_t)room);
  unsigned char* text = malloc(kBytes);
  OK(MPI_Buffer_attach(memory, room));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kCount; ++i) {
      fill(text, kBytes, i + round);
      OK(MPI_Bsend(text, kBytes, MPI_BYTE, partner, i, MPI_COMM_WORLD));
    }
    for (int i = kCount; i-- > 0;) {
      OK(MPI_Recv(text, kBytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(is_filled(text, kBytes, i + round));
    }
    OK(MPI_Buffer_flush());
  }
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  char* long_text = malloc((size_t)room);
  CHECK(MPI_Bsend(long_text, room, MPI_BYTE, partner, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
  void* detached = NULL;
  int detached_size = 0;
  OK(MPI_Buffer_detach(&detached, &detached_size));
  CHECK(detached == memory && detached_size == room);
  free(long_text);
  free(text);
  free(memory);
}

/* A matched message is out of everybody's reach but that of its receive. */
static void probes(void) {
  const int partner = size == 1 ? 0 : rank ^ 1;
  if (partner >= size) return;
  for (int bytes = 1; bytes < 100000; bytes = bytes * 7 + 1) {
    unsigned char* out = malloc((size_t)bytes);
    unsigned char* in = malloc((size_t)bytes);
    MPI_Request sends[2];
    MPI_Message message;
    MPI_Status status;
    int flag = 0, count = 0;
    fill(out, bytes, 1);
    OK(MPI_Isend(out, bytes, MPI_BYTE, partner, 3, MPI_COMM_WORLD, &sends[0]));
    OK(MPI_Isend(out, 1, MPI_BYTE, partner, 3, MPI_COMM_WORLD, &sends[1]));
    if (bytes % 2 == 0)
      OK(MPI_Mprobe(partner, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
    else
      while (!flag) OK(MPI_Improbe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &message, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == bytes);
    OK(MPI_Recv(in, 1, MPI_BYTE, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && is_filled(in, bytes, 1));
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Iprobe(partner, 4, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag);
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(in, 1, MPI_BYTE, &message, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    free(out);
    free(in);
  }
}

/* Arguments that cannot be are refused with their class, and nothing is sent. */
static void arguments(void) {
  int value = 0, flag = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  CHECK(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
  CHECK(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
  CHECK(MPI_Send(&value, 1, (MPI_Datatype)0x30000123, 0, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
  CHECK(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
  CHECK(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
  CHECK(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD) == MPI_ERR_TAG);
  CHECK(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD) == MPI_ERR_TAG);
  CHECK(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL) == MPI_ERR_COMM);
  CHECK(MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm)0x12345678) == MPI_ERR_COMM);
  CHECK(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
  CHECK(MPI_Recv(&value, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_RANK);
  CHECK(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL) == MPI_ERR_ARG);
  OK(MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
  MPI_Request stale = request;
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(MPI_Wait(&stale, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
  CHECK(MPI_Test(&stale, &flag, MPI_STATUS_IGNORE) == MPI_ERR_REQUEST);
  CHECK(MPI_Start(&request) == MPI_ERR_REQUEST);
  CHECK(MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE) == MPI_ERR_ARG);
  CHECK(MPI_Free_mem(&value) == MPI_ERR_BASE);
  CHECK(MPI_Init(NULL, NULL) == MPI_ERR_OTHER);
}

/* Rank 1 dies; whoever waits for it, or sends to it, hears of it. */
static void killed(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  barrier();
  if (rank == 1) abort();
  static char text[100000];
  MPI_Status status;
  MPI_Request receives[3];
  OK(MPI_Irecv(text, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &receives[0]));
  OK(MPI_Irecv(text + 1, 1, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &receives[1]));
  OK(MPI_Isend(text, sizeof text, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &receives[2]));
  for (int i = 0; i < 3; ++i) CHECK(MPI_Wait(&receives[i], &status) == MPI_ERR_PROC_ABORTED);
  CHECK(MPI_Probe(1, 2, MPI_COMM_WORLD, &status) == MPI_ERR_PROC_ABORTED);
  /* What is more than one message ends too, though the receive could wait for others. */
  int one = 1, sum = 0;
  MPI_Request both;
  OK(MPI_Isendrecv(&one, 1, MPI_INT, 1, 4, &sum, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &both));
  CHECK(MPI_Wait(&both, &status) == MPI_ERR_PROC_ABORTED);
  if (size == 2) {
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &both));
    CHECK(MPI_Wait(&both, &status) == MPI_ERR_PROC_ABORTED);
  }
  CHECK(MPI_Send(text, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
  /* The others still talk. */
  if (size > 2 && rank != 1) {
    const int next = rank == 0 ? 2 : (rank + 1) % size;
    const int previous = rank == 2 ? 0 : (rank + size - 1) % size;
    int out = rank, in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, next, 3, &in, 1, MPI_INT, previous, 3, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(in == previous);
  }
}

/* Nobody has talked to rank 1 when it dies. */
static void killed_stranger(void) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == 1) abort();
  char text = 0;
  CHECK(MPI_Recv(&text, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
        MPI_ERR_PROC_ABORTED);
}

/* By default an error ends the job. */
static void fatal(void) {
  int value = 0;
  if (rank == size - 1) MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void abort_of_one(void) {
  int value = 0;
  if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 42);
  MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A token goes round and round. */
static void ring(void) {
  int token = 0;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int lap = 0; lap < 20 && size > 1; ++lap) {
    if (rank == 0) {
      OK(MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
      OK(MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(token == (lap + 1) * (size - 1));
    } else {
      OK(MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      ++token;
      OK(MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
    }
  }
  barrier();
}

/* All send to all at once, short and long. */
static void crowd(void) {
  static const int lengths[] = {8, 5000, 60000};
  for (int l = 0; l < 3; ++l) {
    const int bytes = lengths[l];
    unsigned char* out = malloc((size_t)bytes);
    unsigned char* in = malloc((size_t)bytes * (size_t)size);
    MPI_Request* all = malloc(sizeof(MPI_Request) * 2 * (size_t)size);
    for (int round = 0; round < 20; ++round) {
      fill(out, bytes, rank + round);
      for (int peer = 0; peer < size; ++peer)
        OK(MPI_Isend(out, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD, &all[peer]));
      for (int peer = 0; peer < size; ++peer)
        OK(MPI_Irecv(in + (size_t)bytes * (size_t)peer, bytes, MPI_BYTE, peer, round,
                     MPI_COMM_WORLD, &all[size + peer]));
      OK(MPI_Waitall(2 * size, all, MPI_STATUSES_IGNORE));
      for (int peer = 0; peer < size; ++peer)
        CHECK(is_filled(in + (size_t)bytes * (size_t)peer, bytes, peer + round));
    }
    free(all);
    free(in);
    free(out);
  }
}

static void replace(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  static int values[30000];
  for (int count = 1; count <= 30000; count *= 30) {
    for (int i = 0; i < count; ++i) values[i] = rank * 7 + i;
    OK(MPI_Sendrecv_replace(values, count, MPI_INT, next, 1, previous, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
    for (int i = 0; i < count; ++i) CHECK(values[i] == previous * 7 + i);
  }
}

/* Only what does not lie in a row, long and short. */
static void strided(void) {
  const int partner = size == 1 ? 0 : rank ^ 1;
  if (partner >= size) return;
  for (int count = 3; count < 100000; count *= 20) {
    MPI_Datatype type;
    MPI_Request send;
    int* out = malloc(sizeof(int) * 3 * (size_t)count);
    int* in = calloc((size_t)count * 3, sizeof(int));
    for (int i = 0; i < 3 * count; ++i) out[i] = i;
    OK(MPI_Type_vector(count, 1, 3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Isend(out, 1, type, partner, 1, MPI_COMM_WORLD, &send));
    OK(MPI_Recv(in, 1, type, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3 * count; ++i) CHECK(in[i] == (i % 3 == 0 ? i : 0));
    OK(MPI_Type_free(&type));
    free(out);
    free(in);
  }
}

/* The receiver posts, then computes until it is told by something else than MPI. */
static void computing(void) {
  static char big[1 << 20];
  const int is_sender = rank == 0, is_receiver = rank == 1;
  if (size < 2 || rank > 1) return;
  MPI_Request request;
  char path[64];
  snprintf(path, sizeof path, "/tmp/verbatim-mpi-%d", (int)getppid());
  if (is_receiver) {
    mkfifo(path, 0600);
    for (int i = 0; i < 3; ++i)
      OK(MPI_Sendrecv(big, 1, MPI_CHAR, 0, 1, big, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    OK(MPI_Irecv(big, sizeof big, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Send(big, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD));
    char done = 0;
    FILE* pipe = fopen(path, "r"); /* Not a word to MPI until the sender is through. */
    CHECK(pipe != NULL && fread(&done, 1, 1, pipe) == 1 && done == 'x');
    fclose(pipe);
    unlink(path);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(is_filled((unsigned char*)big, sizeof big, 5));
    /* An invited receive can be cancelled, and what comes then goes elsewhere. */
    MPI_Status status;
    int flag = 0;
    OK(MPI_Irecv(big, sizeof big, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Send(big, 1, MPI_CHAR, 0, 5, MPI_COMM_WORLD));
    memset(big, 0, sizeof big);
    OK(MPI_Recv(big, sizeof big, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &status));
    CHECK(is_filled((unsigned char*)big, sizeof big, 5));
  } else if (is_sender) {
    for (int i = 0; i < 3; ++i)
      OK(MPI_Sendrecv(big, 1, MPI_CHAR, 1, 1, big, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE));
    OK(MPI_Recv(big, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    fill((unsigned char*)big, sizeof big, 5);
    OK(MPI_Send(big, sizeof big, MPI_CHAR, 1, 2, MPI_COMM_WORLD));
    FILE* pipe = fopen(path, "w");
    CHECK(pipe != NULL && fwrite("x", 1, 1, pipe) == 1);
    fclose(pipe);
    OK(MPI_Recv(big, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    fill((unsigned char*)big, sizeof big, 5);
    OK(MPI_Send(big, sizeof big, MPI_CHAR, 1, 4, MPI_COMM_WORLD));
  }
}

/* A short message overtakes, on its way, the invitation of the receive that it matches. */
static void crossing(void) {
  enum { kBytes = 20000, kRounds = 300 };
  static unsigned char first[kBytes], second[kBytes];
  const int partner = rank ^ 1;
  if (partner >= size) return;
  for (int round = 0; round < kRounds; ++round) {
    if (rank % 2 == 0) {
      MPI_Request receives[2];
      OK(MPI_Recv(NULL, 0, MPI_INT, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Irecv(first, kBytes, MPI_BYTE, partner, 6, MPI_COMM_WORLD, &receives[0]));
      OK(MPI_Send(NULL, 0, MPI_INT, partner, 2, MPI_COMM_WORLD));
      OK(MPI_Irecv(second, kBytes, MPI_BYTE, partner, 6, MPI_COMM_WORLD, &receives[1]));
      OK(MPI_Waitall(2, receives, MPI_STATUSES_IGNORE));
      CHECK(is_filled(first, 10, round) && is_filled(second, kBytes, round + 1));
    } else {
      fill(first, 10, round);
      fill(second, kBytes, round + 1);
      OK(MPI_Send(NULL, 0, MPI_INT, partner, 1, MPI_COMM_WORLD));
      OK(MPI_Send(first, 10, MPI_BYTE, partner, 6, MPI_COMM_WORLD));
      OK(MPI_Recv(NULL, 0, MPI_INT, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Send(second, kBytes, MPI_BYTE, partner, 6, MPI_COMM_WORLD));
    }
  }
}

/* Long messages of one tag, receives posted before and after, with wildcards between. */
static void invitations(void) {
  enum { kBytes = 20000, kRounds = 60, kDepth = 6 };
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  unsigned char* out = malloc((size_t)kBytes * kDepth);
  unsigned char* in = malloc((size_t)kBytes * kDepth);
  unsigned seed = 12345u + (unsigned)rank;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Request sends[kDepth], receives[kDepth];
    MPI_Status statuses[kDepth];
    int posted = 0, sent = 0;
    for (int i = 0; i < kDepth; ++i) fill(out + i * kBytes, kBytes, round * kDepth + i);
    while (posted < kDepth || sent < kDepth) {
      seed = seed * 1103515245u + 12345u;
      if ((seed >> 16) % 2 != 0 && posted < kDepth) {
        const int is_wild = (seed >> 20) % 4 == 0;
        OK(MPI_Irecv(in + posted * kBytes, kBytes, MPI_BYTE, is_wild ? MPI_ANY_SOURCE : previous, 6,
                     MPI_COMM_WORLD, &receives[posted]));
        ++posted;
      } else if (sent < kDepth) {
        const int bytes = (seed >> 24) % 3 == 0 ? 100 : kBytes;
        OK(MPI_Isend(out + sent * kBytes, bytes, MPI_BYTE, next, 6, MPI_COMM_WORLD, &sends[sent]));
        ++sent;
      }
      int flag;
      if ((seed >> 28) % 3 == 0)
        OK(MPI_Iprobe(previous, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    OK(MPI_Waitall(kDepth, receives, statuses));
    OK(MPI_Waitall(kDepth, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < kDepth; ++i) {
      int count;
      OK(MPI_Get_count(&statuses[i], MPI_BYTE, &count));
      CHECK(statuses[i].MPI_SOURCE == previous && (count == 100 || count == kBytes));
      CHECK(is_filled(in + i * kBytes, count, round * kDepth + i));
    }
  }
  free(out);
  free(in);
}

static double own_seconds(void) {
  struct timespec used;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/// Who waits for one that is long in coming uses little of a processor that others share.
static void patient(void) {
  const struct timespec long_time = {0, 300 * 1000 * 1000};
  const double used = own_seconds();
  if (rank == 0) nanosleep(&long_time, NULL);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(rank == 0 || own_seconds() - used < 0.06);
}

/* Where the two have each other's rings and windows long messages go in pieces: of all sizes and
   layouts, and whether the other side is in the library or computes. */
enum { kLongest = 12 << 20 };

/* Not a word to MPI before the other rank is through with what it does meanwhile. */
static void wait_for_word(const char* path) {
  char done = 0;
  FILE* pipe = fopen(path, "r");
  CHECK(pipe != NULL && fread(&done, 1, 1, pipe) == 1 && done == 'x');
  fclose(pipe);
}
static void say_word(const char* path) {
  FILE* pipe = fopen(path, "w");
  CHECK(pipe != NULL && fwrite("x", 1, 1, pipe) == 1);
  fclose(pipe);
}

static void streams(void) {
  static const long lengths[] = {8150, 8200, 65536, 65537, 300000, 1 << 20, 5000001, kLongest};
  if (size < 2 || rank > 1) return;
  const int peer = 1 - rank;
  unsigned char* const out = malloc(kLongest);
  unsigned char* const in = malloc(kLongest);
  CHECK(out != NULL && in != NULL);
  char path[64];
  snprintf(path, sizeof path, "/tmp/verbatim-mpi-%d", (int)getppid());
  if (rank == 0) mkfifo(path, 0600);
  for (int i = 0; i < 300; ++i)
    OK(MPI_Sendrecv(out, i < 40 ? 8 : 100000, MPI_BYTE, peer, 1, in, 100000, MPI_BYTE, peer, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int round = 0; round < 6; ++round)
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
      const int length = (int)lengths[i];
      MPI_Request requests[2];
      MPI_Status status;
      int count = 0;
      fill(out, length, round + rank);
      memset(in, 0, (size_t)length);
      if (round % 3 == 0) { /* the receive comes first, or the message does */
        if (rank == round / 3) OK(MPI_Send(out, length, MPI_BYTE, peer, 2, MPI_COMM_WORLD));
        OK(MPI_Recv(in, kLongest, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &status));
        if (rank != round / 3) OK(MPI_Send(out, length, MPI_BYTE, peer, 2, MPI_COMM_WORLD));
      } else if (round % 3 == 1) { /* both at once */
        OK(MPI_Irecv(in, kLongest, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, length, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&requests[0], &status));
      } else { /* not in a row, at either end */
        MPI_Datatype type;
        OK(MPI_Type_vector(length / 3, 1, 2, MPI_BYTE, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Sendrecv(out, 1, type, peer, 2, in, 1, type, peer, 2, MPI_COMM_WORLD, &status));
        OK(MPI_Type_free(&type));
        unsigned char* const expected = malloc((size_t)length);
        fill(expected, length, round + peer);
        for (long at = 0; at + 1 < length / 3 * 2; ++at)
          CHECK(in[at] == (at % 2 == 0 ? expected[at] : 0));
        free(expected);
        continue;
      }
      OK(MPI_Get_count(&status, MPI_BYTE, &count));
      CHECK(count == length && is_filled(in, length, round + peer));
    }
  /* A receive that is too short. */
  MPI_Status status;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fill(out, 200000, 9);
  if (rank == 0) OK(MPI_Send(out, 200000, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
  if (rank == 1) {
    memset(in, 0, 200000);
    CHECK(MPI_Recv(in, 100000, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status) == MPI_ERR_TRUNCATE);
    CHECK(is_filled(in, 100000, 9) && in[100000] == 0);
  }
  /* Who computes stops nobody: neither a receiver, whose receive was posted before, nor a sender. */
  for (int computing_receiver = 0; computing_receiver < 2; ++computing_receiver) {
    const int is_receiver = rank == 0;
    MPI_Request request;
    if (is_receiver && computing_receiver) {
      OK(MPI_Irecv(in, kLongest, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &request));
      OK(MPI_Send(in, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
      wait_for_word(path);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(is_filled(in, kLongest, 7));
    } else if (is_receiver) {
      OK(MPI_Recv(in, kLongest, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(is_filled(in, kLongest, 7));
      say_word(path);
    } else {
      fill(out, kLongest, 7);
      if (computing_receiver) {
        OK(MPI_Recv(in, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(out, kLongest, MPI_BYTE, 0, 4, MPI_COMM_WORLD));
        say_word(path);
      } else {
        OK(MPI_Isend(out, kLongest, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &request));
        wait_for_word(path);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      }
    }
    OK(MPI_Sendrecv(out, 0, MPI_BYTE, peer, 6, in, 0, MPI_BYTE, peer, 6, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
  }
  if (rank == 0) unlink(path);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  static const struct part parts[] = {{"sizes", sizes},
                                      {"ordering", ordering},
                                      {"wildcards", wildcards},
                                      {"unexpected", unexpected},
                                      {"million", million},
                                      {"truncation", truncation},
                                      {"synchronous", synchronous},
                                      {"requests", requests},
                                      {"persistent", persistent},
                                      {"buffered", buffered},
                                      {"probes", probes},
                                      {"arguments", arguments},
                                      {"killed", killed},
                                      {"killed_stranger", killed_stranger},
                                      {"fatal", fatal},
                                      {"abort_of_one", abort_of_one},
                                      {"ring", ring},
                                      {"crowd", crowd},
                                      {"replace", replace},
                                      {"strided", strided},
                                      {"computing", computing},
                                      {"streams", streams},
                                      {"invitations", invitations},
                                      {"crossing", crossing},
                                      {"patient", patient},
                                      {NULL, NULL}};
  return run_part(parts, argc, argv);
}
