// SPDX-License-Identifier: BSD-2-Clause
// Memory on a machine that really has two nodes, and on a device that really pins it, for
// memory_test.sh. One processor on each node, so a thread is moved by its affinity.
//
//   memory placed               what vbt_alloc places is there, by the kernel's own answer
//   memory pool                 in spread memory, it gives each thread what is on its node
//   memory near DEVICE          what is to be near a device is on the node that its files say
//   memory huge                 reserved huge pages of node 1, of which there are 8
//   memory full                 more than node 1 has free: what is elsewhere is told
//   memory forbidden            node 1 is not this process's: refused, and shunned
//   memory region DEVICE        a region far from the thread, asked about; its pinned bytes
//   memory limit DEVICE         64 KiB can be registered, 1 MiB cannot
//   memory lifted DEVICE        both can
//
// What is wrong is said on stderr, and the status is 1.
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <verbatim/memory.h>
#include <verbatim/query.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kMib = 1024 * kKib;
constexpr std::size_t kPage = 4096;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "memory: %s (%s)\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}
void need(bool good, const std::string& what) {
  if (!good) fail(what);
}

void run_on_node(unsigned node) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(node, &one);
  need(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

/// Of each page, the kernel's node, or a negative errno. They are read first: of shared memory it
/// tells only what this process has mapped.
std::vector<int> nodes_of(const void* base, std::size_t bytes) {
  std::vector<const void*> pages;
  for (std::size_t at = 0; at < bytes; at += kPage) {
    pages.push_back(static_cast<const char*>(base) + at);
    (void)*static_cast<const volatile char*>(pages.back());
  }
  std::vector<int> nodes(pages.size(), -1);
  need(syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) == 0,
       "move_pages");
  return nodes;
}

/// A number of KiB that a file of the kernel has behind `name`, in bytes.
std::size_t told(const std::string& file, const std::string& name) {
  std::ifstream text(file);
  std::size_t kib = 0;
  for (std::string word; text >> word;)
    if (word == name && text >> kib) return kib * kKib;
  fail(file + " has no " + name);
}

struct Free {
  void operator()(void* memory) const { need(vbt_free(memory) == 0, "vbt_free"); }
};
using Block = std::unique_ptr<void, Free>;

vbt_alloc_attr wish(std::size_t size, vbt_where where, unsigned node, unsigned flags) {
  vbt_alloc_attr attr{};
  attr.size = size;
  attr.page_size = kPage;
  attr.where = where;
  attr.node = node;
  attr.flags = flags;
  return attr;
}

Block allocate(const vbt_alloc_attr& attr, vbt_alloc_facts& facts) {
  return Block(vbt_alloc(&attr, sizeof attr, &facts, sizeof facts));
}

void placed() {
  constexpr std::size_t kBytes = 4 * kMib;
  constexpr std::size_t kPages = kBytes / kPage;
  for (const unsigned flags : {0u, unsigned{VBT_ALLOC_SHARED}}) {
    for (const unsigned here : {0u, 1u}) {
      run_on_node(here);
      const auto check = [&](const char* name, const vbt_alloc_attr& attr, unsigned node,
                             auto&& node_of_page) {
        const std::string what = std::string(name) + (flags != 0 ? ", shared" : ", private") +
                                 ", by a thread on node " + std::to_string(here);
        vbt_alloc_facts facts;
        const Block block = allocate(attr, facts);
        need(block != nullptr, what);
        need(facts.node == node && facts.fallbacks == 0, what + ": the facts: " + facts.reason);
        const std::vector<int> nodes = nodes_of(block.get(), kBytes);
        for (std::size_t i = 0; i < kPages; ++i)
          need(nodes[i] == node_of_page(i, nodes), what + ": page " + std::to_string(i));
      };
      const auto on = [](unsigned node) {
        return [node](std::size_t, const std::vector<int>&) { return static_cast<int>(node); };
      };
      check("local", wish(kBytes, VBT_WHERE_LOCAL, 0, flags), here, on(here));
      for (const unsigned node : {0u, 1u})
        check("on a node", wish(kBytes, VBT_WHERE_NODE, node, flags), node, on(node));
      check("interleaved", wish(kBytes, VBT_WHERE_INTERLEAVED, 0, flags), VBT_NODE_SEVERAL,
            [](std::size_t i, const std::vector<int>& nodes) {
              return i == 0 ? nodes[0] & 1 : 1 - nodes[i - 1];
            });
      check("spread", wish(kBytes, VBT_WHERE_SPREAD, 0, flags), VBT_NODE_SEVERAL,
            [here](std::size_t i, const std::vector<int>&) {
              return static_cast<int>(i < kPages / 2 ? here : 1 - here);
            });
    }
  }
}

/// Of a pool whose memory is spread, each thread gets what is on its node.
void pool() {
  constexpr std::size_t kCount = 512;
  for (const unsigned flags : {0u, unsigned{VBT_ALLOC_SHARED}}) {
    run_on_node(1);
    const vbt_alloc_attr memory = wish(0, VBT_WHERE_SPREAD, 0, flags);
    vbt_pool_attr attr{};
    attr.buffer_size = attr.alignment = kPage;
    attr.count = kCount;
    attr.memory = &memory;
    attr.memory_size = sizeof memory;
    vbt_pool* const made = vbt_create_pool(&attr, sizeof attr, nullptr, 0);
    need(made != nullptr, "a pool");
    std::vector<void*> taken;
    for (const unsigned node : {0u, 1u}) {
      std::thread([&] {
        run_on_node(node);
        for (std::size_t i = 0; i < kCount / 2; ++i) {
          taken.push_back(vbt_pool_alloc(made));
          need(
              taken.back() != nullptr && nodes_of(taken.back(), kPage)[0] == static_cast<int>(node),
              "buffer " + std::to_string(i) + " of a thread on node " + std::to_string(node));
        }
      }).join();
    }
    need(vbt_pool_alloc(made) == nullptr, "one more than there are");
    for (void* const buffer : taken) need(vbt_pool_free(made, buffer) == 0, "vbt_pool_free");
    need(vbt_destroy_pool(made) == 0, "vbt_destroy_pool");
  }
}

struct Device {
  explicit Device(const char* name) {
    ibv_device** const list = ibv_get_device_list(nullptr);
    for (ibv_device** each = list; each != nullptr && *each != nullptr; ++each)
      if (std::strcmp(ibv_get_device_name(*each), name) == 0) context = ibv_open_device(*each);
    ibv_free_device_list(list);
    need(context != nullptr, std::string("open ") + name);
    pd = ibv_alloc_pd(context);
    need(pd != nullptr, "ibv_alloc_pd");
  }
  ~Device() {
    need(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
    need(ibv_close_device(context) == 0, "ibv_close_device");
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ibv_mr* try_register(void* memory, std::size_t bytes) const {
    return ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
  }
  ibv_mr* register_all(void* memory, std::size_t bytes) const {
    ibv_mr* const mr = try_register(memory, bytes);
    need(mr != nullptr, "ibv_reg_mr of " + std::to_string(bytes / kKib) + " KiB");
    return mr;
  }
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
};

/// A device of shared memory is on no node, unless a tree of device files (SYSFS_PATH) says so.
void near(const char* name) {
  constexpr std::size_t kBytes = kMib;
  char tree[] = "/tmp/vbt-near-XXXXXX";
  need(mkdtemp(tree) != nullptr, "mkdtemp");
  const auto folder = std::filesystem::path(tree) / "class/infiniband" / name / "device";
  need(std::filesystem::create_directories(folder), folder.string());
  setenv("SYSFS_PATH", tree, 1);
  const Device device(name);
  for (const unsigned here : {0u, 1u}) {
    run_on_node(here);
    for (const unsigned flags : {0u, unsigned{VBT_ALLOC_SHARED}}) {
      for (const int on : {0, 1, -1}) {
        const std::string what = "memory near a device on node " + std::to_string(on) +
                                 ", by a thread on node " + std::to_string(here);
        need(bool(std::ofstream(folder / "numa_node") << on << '\n' << std::flush), what);
        vbt_alloc_attr attr = wish(kBytes, VBT_WHERE_DEVICE, 0, flags);
        attr.device = device.context;
        vbt_alloc_facts facts;
        const Block block = allocate(attr, facts);
        const unsigned node = on < 0 ? here : static_cast<unsigned>(on);
        need(block != nullptr && facts.node == node, what);
        need(facts.fallbacks == (on < 0 ? VBT_FALLBACK_NODE : 0), what + ": " + facts.reason);
        for (const int page : nodes_of(block.get(), kBytes))
          need(page == static_cast<int>(node), what + ": a page on node " + std::to_string(page));
      }
    }
  }
  std::filesystem::remove_all(tree);
}

/// Node 1 has 8 reserved pages of 2 MiB, node 0 none.
void huge() {
  constexpr std::size_t kHuge = 2 * kMib;
  const std::string counts =
      "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages";
  const auto free_pages = [&] {
    int count = -1;
    std::ifstream(counts) >> count;
    return count;
  };
  need(free_pages() == 8, "8 reserved pages");
  run_on_node(0);
  vbt_alloc_facts facts;
  vbt_alloc_attr attr = wish(4 * kHuge, VBT_WHERE_NODE, 1, 0);
  attr.page_size = kHuge;
  {
    const Block block = allocate(attr, facts);
    need(block != nullptr && facts.page_size == kHuge && facts.fallbacks == 0 && facts.node == 1,
         std::string("4 huge pages on node 1: ") + facts.reason);
    need(free_pages() == 4, "4 of them are taken");
    for (const int node : nodes_of(block.get(), 4 * kHuge)) need(node == 1, "a page elsewhere");
    attr.node = 0;
    const Block elsewhere = allocate(attr, facts);
    need(elsewhere != nullptr && facts.page_size == kHuge, "the other 4");
    need(facts.fallbacks == VBT_FALLBACK_NODE && facts.node == 1,
         std::string("huge pages that node 0 does not have: ") + facts.reason);
    need(free_pages() == 0, "all are taken");
    attr.node = 1;
    const Block more = allocate(attr, facts);
    need(more != nullptr && facts.page_size == kPage && facts.fallbacks == VBT_FALLBACK_PAGES &&
             std::strstr(facts.reason, "too few free pages of 2 MiB") != nullptr,
         std::string("more huge pages than there are: ") + facts.reason);
    attr.flags = VBT_ALLOC_EXACT;
    errno = 0;
    need(allocate(attr, facts) == nullptr && errno == ENOMEM, "exactly those");
  }
  need(free_pages() == 8, "all are free again");
}

void full() {
  run_on_node(1);
  const std::size_t free = told("/sys/devices/system/node/node1/meminfo", "MemFree:");
  vbt_alloc_attr attr = wish(free + 64 * kMib, VBT_WHERE_NODE, 1, 0);
  vbt_alloc_facts facts;
  const Block block = allocate(attr, facts);
  need(block != nullptr, "what one node has no room for");
  need(facts.fallbacks == VBT_FALLBACK_NODE && facts.node == VBT_NODE_SEVERAL, "the facts");
  need(std::strstr(facts.reason, "no room") != nullptr, std::string("the reason: ") + facts.reason);
}

void forbidden() {
  vbt_alloc_facts facts;
  errno = 0;
  need(allocate(wish(kMib, VBT_WHERE_NODE, 1, 0), facts) == nullptr && errno == EINVAL,
       "a node that is not ours");
  for (const vbt_where where : {VBT_WHERE_LOCAL, VBT_WHERE_INTERLEAVED, VBT_WHERE_SPREAD}) {
    run_on_node(1);
    const Block block = allocate(wish(kMib, where, 0, 0), facts);
    need(block != nullptr && facts.node == 0, "memory on the one node that is ours");
    for (const int node : nodes_of(block.get(), kMib)) need(node == 0, "a page elsewhere");
    if (where == VBT_WHERE_LOCAL)
      need(facts.fallbacks == VBT_FALLBACK_NODE &&
               std::strstr(facts.reason, "may not use the nearest node") != nullptr,
           std::string("the reason: ") + facts.reason);
  }
}

std::size_t pinned() { return told("/proc/self/status", "VmPin:"); }

void region(const char* name) {
  constexpr std::size_t kBytes = 256 * kKib;
  run_on_node(0);
  const Device device(name);
  need(pinned() == 0, "something is pinned before anything is registered");
  vbt_alloc_facts facts;
  const Block near = allocate(wish(kBytes, VBT_WHERE_NODE, 0, 0), facts);
  const Block far = allocate(wish(kBytes, VBT_WHERE_NODE, 1, 0), facts);
  for (const auto& [block, node] : {std::pair{near.get(), 0u}, {far.get(), 1u}}) {
    // Within a page and beyond its end: the pages are pinned whole.
    ibv_mr* const mr = device.register_all(static_cast<char*>(block) + 100, kBytes - kPage);
    vbt_node_pages nodes[2];
    vbt_mr_attr attr{};
    attr.nodes = nodes;
    attr.node_room = 2;
    need(vbt_query_mr(mr, &attr, sizeof attr) == 0, "vbt_query_mr");
    need(attr.placement == VBT_PLACEMENT_KNOWN && attr.local_node == 0, "where the thread is");
    need(attr.page_count == kBytes / kPage && attr.pages_present == attr.page_count, "pages");
    need(attr.node_count == 1 && nodes[0].node == node && nodes[0].pages == attr.page_count,
         "pages by node");
    need(attr.pages_remote == (node == 0 ? 0 : attr.page_count), "remote pages");
    need(attr.pinned_bytes == kBytes, "pinned bytes of the region");
    need(pinned() == kBytes, "pinned bytes of the process, " + std::to_string(pinned()));
    need(ibv_dereg_mr(mr) == 0 && pinned() == 0, "what was deregistered is pinned no more");
  }
}

void limit(const char* name, bool lifted) {
  const Device device(name);
  vbt_alloc_facts facts;
  const Block small = allocate(wish(64 * kKib, VBT_WHERE_LOCAL, 0, 0), facts);
  const Block large = allocate(wish(kMib, VBT_WHERE_LOCAL, 0, 0), facts);
  ibv_mr* const first = device.register_all(small.get(), 64 * kKib);
  errno = 0;
  ibv_mr* const second = device.try_register(large.get(), kMib);
  if (lifted) {
    need(second != nullptr && ibv_dereg_mr(second) == 0, "1 MiB without a limit");
  } else {
    need(second == nullptr && errno == ENOMEM, "1 MiB beyond the limit");
    need(pinned() == 64 * kKib, "what was refused is not pinned");
    ibv_mr* const third = device.register_all(large.get(), 128 * kKib);
    need(ibv_dereg_mr(third) == 0, "ibv_dereg_mr");
  }
  need(ibv_dereg_mr(first) == 0, "ibv_dereg_mr");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* const device = argc > 2 ? argv[2] : "";
  if (what == "placed") return placed(), 0;
  if (what == "pool") return pool(), 0;
  if (what == "near") return near(device), 0;
  if (what == "huge") return huge(), 0;
  if (what == "full") return full(), 0;
  if (what == "forbidden") return forbidden(), 0;
  if (what == "region") return region(device), 0;
  if (what == "limit" || what == "lifted") return limit(device, what == "lifted"), 0;
  std::fprintf(stderr, "memory: what?\n");
  return 2;
}
