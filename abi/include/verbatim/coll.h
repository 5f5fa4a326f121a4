// SPDX-License-Identifier: BSD-2-Clause
//
// Collectives for programs without MPI: barrier, bcast, reduce, allreduce, allgather and alltoall
// of a team of processes, as MPI 5.0 chapter 6 has them, blocking and with a request that is polled.
// Members on one host meet in flags and slots of memory that they all map, others by queue pairs.
//
//   struct vbt_coll_team_attr attr = {.rank = 2, .size = 5, .exchange = by_my_sockets};
//   struct vbt_coll_team* team;
//   if (vbt_coll_create_team(&attr, sizeof attr, &team) != 0) ...  // why: vbt_coll_why
//   vbt_coll_allreduce(team, mine, sums, 1000, VBT_COLL_DOUBLE, VBT_COLL_SUM);
//   vbt_coll_destroy_team(team);
//
// C (C99) and C++. In the archive libverbatim_coll.a, before libverbatim.a. Members are processes:
// a process is a member of any number of teams at once, of each but once. A process that has called
// this library's MPI_Init makes no teams (EBUSY), nor the other way round; another MPI in the
// process is none of this library's business.
//
// THREADS. One thread at a time calls this header, whichever it is; or, once a team was created with
// VBT_COLL_THREADS, any at any time: calls for one team are made by one thread at a time even then,
// those for different teams go on at once. All members make the calls for a team in the same order,
// blocking and not mixed as the program likes; several may be under way on one team. There are no
// threads of the library's for it: what is under way moves on inside the calls of this header only.
//
// BUFFERS belong to the caller and stay untouched by him from the call until the operation is
// complete: one that is sent may be read, one that is received into may be neither read nor
// written. Any memory does; in that of vbt_coll_alloc long vectors are fastest (members read it in
// place). `count` is in elements. Buffers of 0 elements may be NULL. Sent and received memory may
// not overlap (EINVAL), but VBT_COLL_IN_PLACE may stand for what is sent. All members name the same
// count, type, operation and root, and where that is found not to be so, EMSGSIZE answers and the
// team has failed; no memory is written that was not named.
//
// RESULTS. Reductions are done in an order that depends on the team's size and hosts, on count and
// type, and on nothing else: the same again with the same members. All members of an allreduce get
// the same bits.
//
// ERRORS are the answers: 0 or a positive errno. EINVAL: an argument cannot be, nothing was done,
// and the team is as it was; vbt_coll_why says which. All else ends the team: every call for it
// that is under way, here and at the other members, which are told, and every later one, answers an
// error until vbt_coll_destroy_team. What was received into has unspecified contents then.
//   ECONNRESET  a member died or gave the team up; within a host that is known in 2 seconds, between
//               hosts when the device gives up (seconds). What sends long messages to members that
//               do not call this library meanwhile may take 5 seconds more
//   ETIMEDOUT   attr.timeout_ms ran out before all members had come
//   EMSGSIZE    members disagree about the call
//   ENOMEM      no memory
//   EIO         a device failed
//   EPERM       in a child that was forked: teams are the parent's, for whom nothing changes
// The rank at fault, where there is one, is in vbt_coll_query_team, and in the text of vbt_coll_why;
// the same line goes to the log, once for a team (VERBATIM_LOG=error and above).
#ifndef VERBATIM_COLL_H
#define VERBATIM_COLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vbt_coll_team;
struct vbt_coll_request;

enum vbt_coll_type {
  VBT_COLL_BYTE = 1,  // uninterpreted; of operations: band, bor, bxor
  VBT_COLL_INT8,
  VBT_COLL_INT16,
  VBT_COLL_INT32,
  VBT_COLL_INT64,
  VBT_COLL_UINT8,
  VBT_COLL_UINT16,
  VBT_COLL_UINT32,
  VBT_COLL_UINT64,
  VBT_COLL_FLOAT,  // of operations: sum, prod, min, max, as the next two
  VBT_COLL_DOUBLE,
  VBT_COLL_LONG_DOUBLE,
  VBT_COLL_FLOAT_COMPLEX,   // two adjacent parts, real first; of operations: sum, prod, as the
  VBT_COLL_DOUBLE_COMPLEX,  // next two
  VBT_COLL_LONG_DOUBLE_COMPLEX,
  VBT_COLL_BOOL  // C's _Bool, a byte of 0 or 1; of operations: land, lor, lxor
};

enum vbt_coll_op {  // integers: all of them
  VBT_COLL_SUM = 1,
  VBT_COLL_PROD,
  VBT_COLL_MIN,
  VBT_COLL_MAX,
  VBT_COLL_LAND,
  VBT_COLL_LOR,
  VBT_COLL_LXOR,
  VBT_COLL_BAND,
  VBT_COLL_BOR,
  VBT_COLL_BXOR
};

/// Bytes of an element, 0: there is no such type. And whether the operation is of that type: 1 or 0.
size_t vbt_coll_type_size(enum vbt_coll_type type);
int vbt_coll_is_op_of(enum vbt_coll_op op, enum vbt_coll_type type);

/// Where `send` stands: what is sent lies where it is received. Of reduce: at the root only, whose
/// elements are those of `receive`. Of allgather: each member's lie in its own place of `receive`.
/// Of alltoall (all members, or none): the element for each is replaced by that from it.
#define VBT_COLL_IN_PLACE ((const void*)-1)

enum vbt_coll_flags {
  // From this call on several threads of the process call this header at once, also for other
  // teams; it stays so. Waits are slower for it. No other thread is in this header at that moment.
  VBT_COLL_THREADS = 1 << 0,
  // vbt_coll_destroy_team waits for nobody: each member calls it when it likes, once its own calls
  // for the team are done. Said by all members, who see to it in another way that none of their
  // processes ends before all have called it (it would be taken for one that died).
  VBT_COLL_LEAVE_ALONE = 1 << 1
};

struct vbt_coll_team_attr {
  uint32_t rank;  // this process among the members, 0 .. size - 1
  uint32_t size;  // members, 1 .. 65536
  // An allgather among the members, in whatever way the program has: puts member i's `bytes` bytes
  // of `mine` at all + i * bytes, at every member. Called by vbt_coll_create_team only, within it
  // and in its thread, a few times with up to 512 bytes, by all members alike; not by a
  // team of one. Bounding its waits is the program's. 0, or a positive errno, with which
  // vbt_coll_create_team ends here at once; the others are told by their own exchange.
  int (*exchange)(void* context, const void* mine, void* all, size_t bytes);
  void* context;  // of exchange and idle
  // Milliseconds that a call waits for the others, in vbt_coll_create_team (beside exchange) and in
  // each operation from its beginning on; 0: 60 seconds in vbt_coll_create_team, and in operations
  // as long as all members live. That of one member ends the team at all.
  uint32_t timeout_ms;
  uint32_t flags;  // enum vbt_coll_flags
  // NULL, or called over and over by blocking calls that have waited for more than 100 us, every 100
  // us (of members that sleep, VERBATIM_WAIT, 10 ms), in their thread and with nothing of the
  // library's locked: for who must move something else on meanwhile, such as another MPI. It may
  // call nothing of this header.
  void (*idle)(void* context);
  const char* name;  // of the team in the log; NULL: its number. Copied, up to 63 characters
};

/// Called by all members at once; all of them succeed, or none (but for a member that dies in it).
/// `attr_size` is sizeof *attr: what a shorter one does not say is 0. What the members must know of
/// each other travels by `exchange`; connections are made here, so that operations find them.
/// The first one with several members opens the process's device, which stays open until the process
/// ends: memory between processes of one host when all its members are there, else what leads to
/// other hosts; VERBATIM_MPI_DEVICE names another. This and other variables (VERBATIM_WAIT,
/// VERBATIM_COLL_*) are those of the MPI library.
///
/// 0 and `*team`, to be given back with vbt_coll_destroy_team; or an errno (vbt_coll_why says more):
/// EINVAL (rank, size, flags, no exchange; members that say different sizes, or the same rank, or
/// VBT_COLL_LEAVE_ALONE when others do not, or that are one process), EBUSY (a process that has
/// called this library's MPI_Init), ENODEV (no device), EHOSTUNREACH (members of different hosts
/// whose devices cannot reach each other), EPROTO (members with other versions of this library),
/// ENOMEM, ETIMEDOUT, ECONNRESET, EPERM (a forked child), and what exchange answered.
int vbt_coll_create_team(const struct vbt_coll_team_attr* attr, size_t attr_size,
                         struct vbt_coll_team** team);

/// Called by all members, as an operation is: it waits until all have come to it, so that nobody who
/// ends then is taken for one that died (of a team that has failed, or was created with
/// VBT_COLL_LEAVE_ALONE, it waits for nobody). 0 (also of NULL), whatever became of the others; EBUSY
/// while requests of the team were not given back, EPERM in a forked child, where nothing happens.
int vbt_coll_destroy_team(struct vbt_coll_team* team);

struct vbt_coll_team_facts {
  uint32_t rank;
  uint32_t size;
  uint32_t is_one_host;   // 1: all members share a host
  uint32_t is_mapped;     // 1: and meet in memory that they map: flags and slots, no queue pairs
  int32_t error;          // 0, or what has ended the team
  int32_t rank_at_fault;  // that has died, or had not come when the time ran out; -1: none known
};

/// `size` is sizeof *facts: filled as far as it goes, cleared beyond what this library knows.
/// 0, or EINVAL: no team, or no structure.
int vbt_coll_query_team(struct vbt_coll_team* team, struct vbt_coll_team_facts* facts, size_t size);

/// Why the last call of this header in this thread was refused or failed, one line for people; ""
/// if none was. Stays good until the next call of this header in this thread.
const char* vbt_coll_why(void);

// Operations. Those that block return when their part is done here: of bcast and reduce that is not
// to say that others have come.

int vbt_coll_barrier(struct vbt_coll_team* team);

/// The root's elements become everybody's.
int vbt_coll_bcast(struct vbt_coll_team* team, void* buffer, size_t count, enum vbt_coll_type type,
                   uint32_t root);

/// `receive` counts at the root only, and may be NULL elsewhere.
int vbt_coll_reduce(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                    enum vbt_coll_type type, enum vbt_coll_op op, uint32_t root);

int vbt_coll_allreduce(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                       enum vbt_coll_type type, enum vbt_coll_op op);

/// `count` elements of each member: `receive` has room for count * size, by rank.
int vbt_coll_allgather(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                       enum vbt_coll_type type);

/// `count` elements from each member to each: both buffers have count * size, by rank.
int vbt_coll_alltoall(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                      enum vbt_coll_type type);

// The operations above, begun only: 0 and `*request`, which is given back by the vbt_coll_poll or
// vbt_coll_wait that answers anything but EINPROGRESS. On an error `*request` is NULL.

int vbt_coll_ibarrier(struct vbt_coll_team* team, struct vbt_coll_request** request);
int vbt_coll_ibcast(struct vbt_coll_team* team, void* buffer, size_t count, enum vbt_coll_type type,
                    uint32_t root, struct vbt_coll_request** request);
int vbt_coll_ireduce(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                     enum vbt_coll_type type, enum vbt_coll_op op, uint32_t root,
                     struct vbt_coll_request** request);
int vbt_coll_iallreduce(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                        enum vbt_coll_type type, enum vbt_coll_op op,
                        struct vbt_coll_request** request);
int vbt_coll_iallgather(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                        enum vbt_coll_type type, struct vbt_coll_request** request);
int vbt_coll_ialltoall(struct vbt_coll_team* team, const void* send, void* receive, size_t count,
                       enum vbt_coll_type type, struct vbt_coll_request** request);

/// Moves everything on that is under way in this process, of whatever team, and looks at this one.
/// EINPROGRESS: not complete. Otherwise `*request` is NULL from now on: 0 (also when it was NULL),
/// or the error that ended it. EINVAL for what is no request. Never waits, and gives no processor
/// away: who does nothing else meanwhile, on fewer processors than members, waits instead.
int vbt_coll_poll(struct vbt_coll_request** request);

/// Until it is complete; answers as vbt_coll_poll, but never EINPROGRESS.
int vbt_coll_wait(struct vbt_coll_request** request);

/// Moves everything on, and looks at nothing: for who computes meanwhile. Never waits.
void vbt_coll_progress(void);

/// At least `size` bytes of zeroed memory aligned to a page, which other members on the host read in
/// place. NULL + errno: EINVAL (0 bytes), ENOMEM, EPERM (a forked child).
void* vbt_coll_alloc(size_t size);

/// Gives such memory back, when no operation uses it: 0 (also of NULL), or EINVAL for any other
/// address. It may outlive all teams.
int vbt_coll_free(void* memory);

#ifdef __cplusplus
}
#endif

#endif  // VERBATIM_COLL_H
