// SPDX-License-Identifier: BSD-2-Clause
//
// Which byte a memory window opens, and for what (IBTA 10.6.7; man ibv_alloc_mw, ibv_bind_mw):
// every operation through windows of both types with every right, in bounds and one off at each
// end, after the window was closed and after it was given back. The region behind it is larger than
// the window and closed to peers, so that nothing else lets a request pass.
#include <memory>

#include "tests/conformance/access_stage.hpp"
#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

enum class Place { kStart, kEnd, kBeforeStart, kBeyondEnd, kTooLong, kClosed, kGivenBack };
constexpr const char* kPlaceNames[] = {"AtTheStart", "AtTheEnd", "BeforeTheStart", "BeyondTheEnd",
                                       "TooLong",    "Closed",   "GivenBack"};

struct Cell {
  Setting setting;
  ibv_mw_type type;
  Operation operation;
  int rights;
  Place place;
};

void PrintTo(const Cell& cell, std::ostream* out) { *out << name_of(cell.setting); }

std::string cell_name(const ::testing::TestParamInfo<Cell>& tested) {
  const Cell& cell = tested.param;
  return name_of(cell.setting) + "_Type" + std::to_string(cell.type) + '_' +
         kOperationNames[static_cast<int>(cell.operation)] + '_' + rights_name(cell.rights) + '_' +
         kPlaceNames[static_cast<int>(cell.place)];
}

std::vector<Cell> cells() {
  constexpr int kWrite = IBV_ACCESS_REMOTE_WRITE, kRead = IBV_ACCESS_REMOTE_READ,
                kAtomic = IBV_ACCESS_REMOTE_ATOMIC;
  std::vector<Cell> all;
  for (const Setting& setting : on_every_device({{Placement::kOneContext, MemoryKind::kOrdinary},
                                                 {Placement::kTwoProcesses, MemoryKind::kMapped}}))
    for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2})
      for (const Operation operation :
           {Operation::kWrite, Operation::kRead, Operation::kFetchAdd, Operation::kCompareSwap})
        for (const int rights : {kWrite, kRead, kAtomic, kWrite | kRead | kAtomic})
          for (int place = 0; place <= static_cast<int>(Place::kGivenBack); ++place)
            all.push_back({setting, type, operation, rights, static_cast<Place>(place)});
  return all;
}

class WindowAccess : public ::testing::TestWithParam<Cell> {
 protected:
  static void TearDownTestSuite() { stage_.reset(); }
  void SetUp() override {
    if (stage_ == nullptr || stage_->name != name_of(GetParam().setting)) {
      stage_.reset();
      stage_ = std::make_unique<Stage>(GetParam().setting);
    }
    stage_->pair.a.fill(stage_->local, 0, 4 * kPage, kLocalSeed);
    stage_->pair.b.fill(stage_->remote, 0, 4 * kPage, kRemoteSeed);
  }
  void TearDown() override {
    if (HasFailure())
      stage_.reset();
    else if (failed_)
      stage_->pair.reconnect();
  }

  Operation operation() const { return GetParam().operation; }
  Place place() const { return GetParam().place; }
  bool atomic() const {
    return operation() == Operation::kFetchAdd || operation() == Operation::kCompareSwap;
  }
  std::uint64_t length() const { return atomic() ? 8 : 64; }
  bool in_place() const { return place() == Place::kStart || place() == Place::kEnd; }
  bool out_of_bounds() const { return !in_place() && place() < Place::kClosed; }
  bool rights_suffice() const {
    const int needed = operation() == Operation::kWrite  ? IBV_ACCESS_REMOTE_WRITE
                       : operation() == Operation::kRead ? IBV_ACCESS_REMOTE_READ
                                                         : IBV_ACCESS_REMOTE_ATOMIC;
    return (GetParam().rights & needed) != 0;
  }
  /// Where in the window the operation goes.
  std::uint64_t offset() const {
    const std::uint64_t step = atomic() ? 8 : 1;
    switch (place()) {
      case Place::kEnd:
        return kPage - length();
      case Place::kBeforeStart:
        return std::uint64_t{0} - step;
      case Place::kBeyondEnd:
        return kPage - length() + step;
      case Place::kTooLong:
        return atomic() ? kPage : 0;
      default:
        return 0;
    }
  }
  std::string lacks_windows() {
    const unsigned flags = stage_->pair.a.here().session()->attr.device_cap_flags;
    const unsigned needed =
        GetParam().type == IBV_MW_TYPE_1
            ? unsigned{IBV_DEVICE_MEM_WINDOW}
            : unsigned{IBV_DEVICE_MEM_WINDOW_TYPE_2A} | unsigned{IBV_DEVICE_MEM_WINDOW_TYPE_2B};
    return (flags & needed) != 0 ? std::string{} : "the device has no windows of this type";
  }
  /// One completion of the window's owner.
  void settle() {
    EXPECT_EQ(stage_->pair.b.poll_sends(stage_->pair.qb, 1)[0].status, IBV_WC_SUCCESS);
  }
  WindowBind bind(const WindowInfo& window, const RegionInfo& region, std::uint64_t bytes) {
    Pair& pair = stage_->pair;
    WindowBind asked;
    asked.window = window.id;
    asked.region = region.id;
    asked.rkey = ibv_inc_rkey(pair.b.call<&Endpoint::window_key>(window.id));
    asked.address = region.address + kPage;
    asked.length = bytes;
    asked.access = static_cast<std::uint32_t>(GetParam().rights);
    return asked;
  }
  /// By a bind of no bytes, or by a local invalidate.
  void close(const WindowInfo& window, const RegionInfo& region, std::uint32_t key) {
    Pair& pair = stage_->pair;
    if (GetParam().type == IBV_MW_TYPE_1) {
      ASSERT_EQ(pair.b.bind_window(pair.qb, bind(window, region, 0)), 0);
    } else {
      expect_posted(pair.b.post_send(pair.qb, local_invalidate(9, key)));
    }
    settle();
  }

  static std::unique_ptr<Stage> stage_;
  bool failed_ = false;  ///< the queue pairs are in error
};

std::unique_ptr<Stage> WindowAccess::stage_;

TEST_P(WindowAccess, IsWhatItWasBoundFor) {
  SKIP_IF(lacks_windows());
  Pair& pair = stage_->pair;
  if (out_of_bounds()) SKIP_IF(quirk_of(pair.qb.vendor, kWindowsWithoutBounds));
  const RegionInfo region = pair.b.register_part(stage_->remote, 0, 4 * kPage,
                                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  const WindowInfo window = pair.b.allocate_window(GetParam().type);
  const WindowBind asked = bind(window, region, kPage);
  ASSERT_EQ(pair.b.bind_window(pair.qb, asked), 0);
  settle();
  RegionInfo shown;
  // Of type 2 it is the program that chooses the key, and keeps it.
  shown.rkey =
      GetParam().type == IBV_MW_TYPE_2 ? asked.rkey : pair.b.call<&Endpoint::window_key>(window.id);
  shown.address = region.address + kPage;
  if (place() == Place::kClosed) close(window, region, shown.rkey);
  if (place() == Place::kGivenBack) {
    ASSERT_EQ(pair.b.free_window(window), 0);
  }

  Request request = request_of(operation(), slice(stage_->local, 0, length()), shown, offset());
  if (place() == Place::kTooLong && !atomic()) request.from = slice(stage_->local, 0, kPage + 1);
  if (operation() == Operation::kCompareSwap && rights_suffice() && in_place())
    pair.b.store(stage_->remote, kPage + offset(), 1);  // what it compares with
  expect_posted(pair.a.post_send(pair.qa, request));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  if (rights_suffice() && in_place()) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    const std::uint64_t at = kPage + offset();
    if (operation() == Operation::kWrite) {
      EXPECT_EQ(pair.b.peek(stage_->remote, at, length()), pair.a.peek(stage_->local, 0, length()));
    } else if (operation() == Operation::kRead) {
      EXPECT_EQ(pair.a.peek(stage_->local, 0, length()), pair.b.peek(stage_->remote, at, length()));
    } else if (operation() == Operation::kFetchAdd) {
      EXPECT_EQ(pair.b.load(stage_->remote, at), pair.a.load(stage_->local, 0) + 0x0101);
    } else if (operation() == Operation::kCompareSwap) {
      EXPECT_EQ(pair.a.load(stage_->local, 0), 1u) << "what was there";
      EXPECT_EQ(pair.b.load(stage_->remote, at), 2u);
    }
  } else {
    failed_ = true;
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << ibv_wc_status_str(wc.status);
    EXPECT_EQ(pair.a.mismatch(stage_->local, 0, 4 * kPage, kLocalSeed), -1);
    EXPECT_EQ(pair.b.mismatch(stage_->remote, 0, 4 * kPage, kRemoteSeed), -1);
  }
  if (place() != Place::kGivenBack) {
    EXPECT_EQ(pair.b.free_window(window), 0);
  }
  EXPECT_EQ(pair.b.deregister(region), 0);
}
INSTANTIATE_TEST_SUITE_P(, WindowAccess, ::testing::ValuesIn(cells()), cell_name);

}  // namespace
}  // namespace verbatim::harness
