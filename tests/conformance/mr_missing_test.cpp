// SPDX-License-Identifier: BSD-2-Clause
//
// Registering what is not there. A device's driver pins the pages and answers EFAULT for what it
// cannot pin (Linux, drivers/infiniband/core/umem.c, over pin_user_pages(9)); so a wrong pointer or
// length is found where it is given. What is on demand is not pinned: man ibv_reg_mr,
// IBV_ACCESS_ON_DEMAND.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/conformance/mr_stage.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

constexpr int kWrite = IBV_ACCESS_LOCAL_WRITE;

/// Mappings of this process, until the end of the test.
class Mappings {
 public:
  ~Mappings() {
    for (const auto& [at, bytes] : made_) ::munmap(at, bytes);
  }
  char* make(std::size_t bytes, int protection = PROT_READ | PROT_WRITE, int file = -1) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const at = ::mmap(nullptr, bytes, protection, flags, file, 0);
    EXPECT_NE(at, MAP_FAILED);
    made_.emplace_back(at, bytes);
    return static_cast<char*>(at);
  }

 private:
  std::vector<std::pair<void*, std::size_t>> made_;
};

class MissingMemory : public MrStage {
 protected:
  /// Every verb that registers addresses refuses these, and names the first byte in the log.
  void refused(const char* what, const void* start, std::size_t length, int access,
               const void* first) {
    SCOPED_TRACE(what);
    expect_complaints();
    void* const at = const_cast<void*>(start);
    expect_refused(ibv_reg_mr(pd(), at, length, access));
    // (Kernel devices want the same place in a page.)
    const std::uint64_t iova = address_of(at) % page_ + 8 * page_;
    expect_refused(ibv_reg_mr_iova2(pd(), at, length, iova, static_cast<unsigned>(access)));
    ibv_mr_init_attr attr{};
    attr.comp_mask = IBV_REG_MR_MASK_ADDR;
    attr.addr = at;
    attr.length = length;
    attr.access = access;
    expect_refused(ibv_reg_mr_ex(pd(), &attr));
    char named[64];
    std::snprintf(named, sizeof named, " (Bad address): %#" PRIxPTR " ", address_of(first));
    for (const std::string& line : LogWatch::instance()->complaints())
      EXPECT_NE(line.find(named), std::string::npos) << line << " does not say" << named;
    LogWatch::instance()->judge();
  }
  static void expect_refused(ibv_mr* made) {
    EXPECT_EQ(made, nullptr);
    if (made == nullptr)
      EXPECT_EQ(errno, EFAULT) << std::strerror(errno);
    else
      EXPECT_EQ(ibv_dereg_mr(made), 0);
  }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  Mappings mappings_;
};
RUN_ON_EVERY_DEVICE(MissingMemory);

TEST_P(MissingMemory, ThatIsNotMappedIsABadAddress) {
  char* const memory = mappings_.make(64 * page_);
  ASSERT_EQ(::mprotect(memory + 8 * page_, page_, PROT_NONE), 0);
  char* const hole = memory + 8 * page_;
  refused("address 0", nullptr, page_, kWrite, nullptr);
  refused("a page without rights", hole + 8, 16, kWrite, hole + 8);
  refused("runs into it", memory + 7 * page_ + 100, page_, kWrite, hole);
  refused("with it in the middle", memory + page_, 10 * page_, kWrite, hole);
  ASSERT_EQ(::munmap(hole, page_), 0);
  refused("an unmapped page", hole + 8, 16, kWrite, hole + 8);
  refused("runs into it", memory + 7 * page_ + 100, page_, 0, hole);
  refused("with it in the middle", memory + page_, 10 * page_, 0, hole);
  refused("of many pages", memory + page_ + 1, 50 * page_, kWrite, hole);
}

TEST_P(MissingMemory, OfTheKernelIsABadAddress) {
  const auto kernels = std::uintptr_t{0xffff888000000000};
  void* const at = reinterpret_cast<void*>(kernels);
  refused("a page", at, page_, kWrite, at);
}

TEST_P(MissingMemory, ThatMayOnlyBeReadIsABadAddressForLocalWrite) {
  static constexpr char kConstant[8192] = "a constant";
  refused("a constant", kConstant, sizeof kConstant, kWrite, kConstant);
  const MrHandle readable(ibv_reg_mr(pd(), const_cast<char*>(kConstant), sizeof kConstant, 0));
  EXPECT_NE(readable, nullptr) << std::strerror(errno);
  char* const memory = mappings_.make(64 * page_);
  ASSERT_EQ(::mprotect(memory + 60 * page_, 4 * page_, PROT_READ), 0);
  refused("the end of many pages", memory, 64 * page_, kWrite, memory + 60 * page_);
}

TEST_P(MissingMemory, PastTheEndOfItsFileIsABadAddress) {
  const int file = ::memfd_create("short", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, static_cast<off_t>(2 * page_ + 10)), 0);
  char* const memory = mappings_.make(64 * page_, PROT_READ | PROT_WRITE, file);
  ::close(file);
  refused("a page", memory + 3 * page_, 8, kWrite, memory + 3 * page_);
  refused("runs over it", memory + page_, 4 * page_, 0, memory + 3 * page_);
  refused("many pages", memory, 64 * page_, kWrite, memory + 3 * page_);
  const MrHandle whole(ibv_reg_mr(pd(), memory, 3 * page_, kWrite));
  EXPECT_NE(whole, nullptr) << std::strerror(errno);
}

TEST_P(MissingMemory, CannotBecomeARegionThatIsThere) {
  ibv_mr* const made = mr(theirs_, 1024, kAllAccess);
  expect_complaints();
  for (const int change : {int{IBV_REREG_MR_CHANGE_ACCESS}, int{IBV_REREG_MR_CHANGE_TRANSLATION}}) {
    if (ibv_rereg_mr(made, change, nullptr, theirs_, 1024, kAllAccess) != 0)
      SKIP_IF(unless_unsupported("ibv_rereg_mr", errno));
  }
  char* const memory = mappings_.make(4 * page_);
  ASSERT_EQ(::mprotect(memory + page_, page_, PROT_NONE), 0);
  EXPECT_NE(ibv_rereg_mr(made, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, 4 * page_, 0), 0);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(made->addr, theirs_);
  EXPECT_EQ(write_to(address_of(theirs_), made->rkey), IBV_WC_SUCCESS);
  char* const read_only = mappings_.make(page_, PROT_READ);
  ibv_mr* const reads = mr(read_only, page_, IBV_ACCESS_REMOTE_READ);
  EXPECT_NE(ibv_rereg_mr(reads, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess), 0);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(run(IBV_WR_RDMA_READ, address_of(read_only), reads->rkey), IBV_WC_SUCCESS);
}

TEST_P(MissingMemory, MayBeRegisteredOnDemand) {
  char* const memory = mappings_.make(64 * page_);
  ASSERT_EQ(::mprotect(memory + 8 * page_, page_, PROT_NONE), 0);
  int access = kAllAccess | IBV_ACCESS_ON_DEMAND;
  const MrHandle holey(ibv_reg_mr(pd(), memory, 64 * page_, access));
  if (holey == nullptr) SKIP_IF(unless_unsupported("IBV_ACCESS_ON_DEMAND", errno));
  const MrHandle nowhere(ibv_reg_mr(pd(), memory + 8 * page_, page_, access));
  EXPECT_NE(nowhere, nullptr) << std::strerror(errno);
  EXPECT_EQ(write_to(address_of(memory), holey->rkey), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbatim::harness
