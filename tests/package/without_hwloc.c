/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory in every place and of every page size, registered and asked about, where nobody knows the
   machine. Prints, a line each, what was asked for, the node that was told and the fallbacks; ends
   with 1 where something fails. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <verbatim/memory.h>
#include <verbatim/query.h>

#define NEED(condition) \
  if (!(condition)) return perror(#condition), 1

int main(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  NEED(devices && devices[0]);
  struct ibv_context* context = ibv_open_device(devices[0]);
  NEED(context);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  NEED(pd);
  static const size_t kPages[] = {0, 4096, 2 << 20, 1 << 30};
  for (unsigned shared = 0; shared < 2; ++shared) {
    for (unsigned where = VBT_WHERE_LOCAL; where <= VBT_WHERE_SPREAD; ++where) {
      for (unsigned page = 0; page < 4; ++page) {
        struct vbt_alloc_attr attr = {.size = 100000,
                                      .page_size = kPages[page],
                                      .where = where,
                                      .device = context,
                                      .flags = shared ? VBT_ALLOC_SHARED : 0};
        struct vbt_alloc_facts facts;
        char* memory = vbt_alloc(&attr, sizeof attr, &facts, sizeof facts);
        NEED(memory);
        NEED(memory[0] == 0 && memory[99999] == 0);
        memset(memory, 1, facts.size);
        NEED(!facts.fallbacks == !facts.reason[0]);
        struct ibv_mr* mr =
            ibv_reg_mr(pd, memory, 100000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        NEED(mr);
        struct vbt_mr_attr seen;
        memset(&seen, 0, sizeof seen);
        NEED(vbt_query_mr(mr, &seen, sizeof seen) == 0);
        printf("%s %u %u: node %u fallbacks %u pages %u\n", shared ? "shared" : "private", where,
               page, facts.node, facts.fallbacks, (unsigned)seen.page_count);
        NEED(ibv_dereg_mr(mr) == 0 && vbt_free(memory) == 0);
      }
    }
  }
  struct vbt_alloc_attr nowhere = {.size = 4096, .where = VBT_WHERE_NODE, .node = 1023};
  NEED(vbt_alloc(&nowhere, sizeof nowhere, NULL, 0) == NULL);
  struct vbt_pool_attr wish = {
      .buffer_size = 2048, .count = 64, .pd = pd, .access = IBV_ACCESS_LOCAL_WRITE};
  struct vbt_pool* pool = vbt_create_pool(&wish, sizeof wish, NULL, 0);
  NEED(pool);
  void* buffer = vbt_pool_alloc(pool);
  NEED(buffer && vbt_pool_free(pool, buffer) == 0 && vbt_destroy_pool(pool) == 0);
  NEED(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
  ibv_free_device_list(devices);
  return 0;
}
