// SPDX-License-Identifier: BSD-2-Clause
// A program that links no libibverbs and finds all by name and version, as NCCL does:
// `loading LIBRARY [SYSTEMS_LIBRARY]`.
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static void* library;

static void* find(const char* name, const char* node) {
  void* const found = dlvsym(library, name, node);
  if (found == NULL) fprintf(stderr, "no %s@%s: %s\n", name, node, dlerror());
  EXPECT(found != NULL);
  return found;
}

// What a name of such a version is, when it is called.
typedef struct ibv_device** list_function(int*);
typedef struct ibv_context* open_function(struct ibv_device*);
typedef int close_function(struct ibv_context*);
typedef int command_function(void);

static struct ibv_device** list(int* count) {
  return ((list_function*)find("ibv_get_device_list", "IBVERBS_1.1"))(count);
}

static struct ibv_context* open_shm(void) {
  int count = 0;
  struct ibv_device** const devices = list(&count);
  EXPECT(devices != NULL && count > 0);
  struct ibv_context* const context =
      ((open_function*)find("ibv_open_device", "IBVERBS_1.1"))(devices[0]);
  EXPECT(context != NULL);
  // Vendors' libraries read a pointer here to see whether a device is theirs.
  void* operations;
  memcpy(&operations, (const char*)devices[0] + 664, sizeof operations);
  EXPECT(operations == NULL);
  ((void (*)(struct ibv_device**))find("ibv_free_device_list", "IBVERBS_1.1"))(devices);
  return context;
}

// Each says no, and is there all the same: who was linked long ago, and drivers of rdma-core.
static void refuse_others(void) {
  int count = 7;
  errno = 0;
  EXPECT(((list_function*)find("ibv_get_device_list", "IBVERBS_1.0"))(&count) == NULL);
  EXPECT(errno == EOPNOTSUPP);
  EXPECT(((command_function*)find("ibv_cmd_alloc_pd", "IBVERBS_PRIVATE_34"))() == EOPNOTSUPP);
  EXPECT(((command_function*)find("ibv_cmd_alloc_pd", "IBVERBS_PRIVATE_59"))() == EOPNOTSUPP);
  ((void (*)(const void*))find("verbs_register_driver_34", "IBVERBS_PRIVATE_34"))(NULL);
  EXPECT(!*(bool*)find("verbs_allow_disassociate_destroy", "IBVERBS_PRIVATE_34"));
  EXPECT(dlvsym(library, "ibv_open_device", "IBVERBS_9.9") == NULL);
  EXPECT(dlsym(library, "vbt_alloc") == NULL);
}

int main(int argc, char** argv) {
  EXPECT(argc > 1);
  // The system's, loaded before ours: each keeps to itself.
  void* const theirs = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
  EXPECT(argc <= 2 || theirs != NULL);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  EXPECT(library != NULL);
  refuse_others();
  struct ibv_context* const context = open_shm();
  close_function* const close_device = find("ibv_close_device", "IBVERBS_1.1");
  // A plugin is closed while a thread of the library still works for its device.
  EXPECT(dlclose(library) == 0);
  EXPECT(close_device(context) == 0);
  if (theirs != NULL) {
    int count = 0;
    struct ibv_device** const devices =
        ((list_function*)dlvsym(theirs, "ibv_get_device_list", "IBVERBS_1.1"))(&count);
    for (int i = 0; devices != NULL && i < count; ++i)
      EXPECT(strcmp(devices[i]->name, "shm0") != 0);
  }
  puts("loaded");
  return 0;
}
