// SPDX-License-Identifier: BSD-2-Clause
//
// Who may touch which byte (IBTA 10.6.3, 9.7.4.1.5, 9.7.5.1.3, 11.2.8; man ibv_reg_mr): every
// operation on memory with every combination of rights, in bounds and one off at each end, after
// deregistration and reregistration, in another protection domain. What is refused ends in the
// status of its side and moves not a byte; what is allowed moves its bytes.
#include <memory>

#include "tests/conformance/access_stage.hpp"
#include "tests/support/device.hpp"
#include "tests/support/pattern.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

enum class Where {
  kStart,
  kEnd,
  kBeforeStart,
  kBeyondEnd,
  kTooLong,
  kDeregistered,
  kRightsChanged,
  kMovedAway,
  kForeignDomain
};
constexpr const char* kWhereNames[] = {"AtTheStart",    "AtTheEnd",  "BeforeTheStart",
                                       "BeyondTheEnd",  "TooLong",   "Deregistered",
                                       "RightsChanged", "MovedAway", "OfAnotherDomain"};

/// The region under test is remote for the operation, or local.
struct Cell {
  Setting setting;
  bool remote;
  Operation operation;
  int rights;
  Where where;
};

void PrintTo(const Cell& cell, std::ostream* out) { *out << name_of(cell.setting); }

std::string cell_name(const ::testing::TestParamInfo<Cell>& tested) {
  const Cell& cell = tested.param;
  return name_of(cell.setting) + '_' + kOperationNames[static_cast<int>(cell.operation)] + '_' +
         rights_name(cell.rights) + '_' + kWhereNames[static_cast<int>(cell.where)];
}

std::vector<Cell> cells(bool remote, std::vector<Operation> operations, std::vector<int> rights) {
  std::vector<Cell> all;
  for (const Setting& setting :
       on_every_device({{Placement::kOneContext, MemoryKind::kOrdinary},
                        {Placement::kTwoProcesses, MemoryKind::kOrdinary},
                        {Placement::kTwoProcesses, MemoryKind::kMapped}})) {
    for (const Operation operation : operations) {
      for (const int right : rights) {
        for (int where = 0; where <= static_cast<int>(Where::kForeignDomain); ++where) {
          all.push_back({setting, remote, operation, right, static_cast<Where>(where)});
        }
      }
    }
  }
  return all;
}

std::vector<Cell> remote_cells() {
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  return cells(true,
               {Operation::kWrite, Operation::kRead, Operation::kFetchAdd, Operation::kCompareSwap},
               {0, kLocal, kLocal | IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
                kLocal | IBV_ACCESS_REMOTE_ATOMIC,
                kLocal | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, kAllAccess});
}

std::vector<Cell> local_cells() {
  return cells(false,
               {Operation::kWrite, Operation::kRead, Operation::kFetchAdd, Operation::kCompareSwap,
                Operation::kSend, Operation::kReceive},
               {0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ});
}

class Access : public ::testing::TestWithParam<Cell> {
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
    if (HasFatalFailure() || HasFailure()) {
      stage_.reset();
    } else if (failed_) {
      stage_->pair.reconnect();
    }
  }

  Operation operation() const { return GetParam().operation; }
  bool atomic() const {
    return operation() == Operation::kFetchAdd || operation() == Operation::kCompareSwap;
  }
  std::uint64_t length() const { return atomic() ? 8 : 64; }
  bool has(int right) const { return (GetParam().rights & right) != 0; }

  bool rights_suffice() const {
    if (GetParam().remote) {
      return has(operation() == Operation::kWrite  ? IBV_ACCESS_REMOTE_WRITE
                 : operation() == Operation::kRead ? IBV_ACCESS_REMOTE_READ
                                                   : IBV_ACCESS_REMOTE_ATOMIC);
    }
    // What only gives its bytes away needs no right at all.
    return operation() == Operation::kWrite || operation() == Operation::kSend ||
           has(IBV_ACCESS_LOCAL_WRITE);
  }
  bool in_place() const {
    const Where where = GetParam().where;
    return where == Where::kStart || where == Where::kEnd || where == Where::kRightsChanged;
  }

  /// Registers the region under test on `side`; `refused` says why the test must be skipped.
  RegionInfo region_under_test(Side& side, const RegionInfo& whole, std::string& refused) {
    const int rights = GetParam().rights;
    switch (GetParam().where) {
      case Where::kForeignDomain:
        return side.register_foreign(whole, rights);
      case Where::kDeregistered: {
        const RegionInfo gone = side.register_part(whole, kPage, kPage, rights);
        EXPECT_EQ(side.deregister(gone), 0);
        return gone;
      }
      case Where::kRightsChanged: {
        const int before = rights == 0 ? kAllAccess : 0;
        const RegionInfo made = side.register_part(whole, kPage, kPage, before);
        return changed(side, made, IBV_REREG_MR_CHANGE_ACCESS, kPage, refused);
      }
      case Where::kMovedAway: {
        const RegionInfo made = side.register_part(whole, kPage, kPage, rights);
        return changed(side, made, IBV_REREG_MR_CHANGE_TRANSLATION, 2 * kPage, refused);
      }
      default:
        return side.register_part(whole, kPage, kPage, rights);
    }
  }
  /// Where in it the operation goes.
  std::uint64_t offset() const {
    const std::uint64_t step = atomic() && GetParam().remote ? 8 : 1;
    switch (GetParam().where) {
      case Where::kEnd:
        return kPage - length();
      case Where::kBeforeStart:
        return std::uint64_t{0} - step;
      case Where::kBeyondEnd:
        return kPage - length() + step;
      case Where::kTooLong:
        return kPage + step - length();
      case Where::kMovedAway:
        return std::uint64_t{0} - kPage;
      case Where::kForeignDomain:
        return kPage;  // it spans all the memory
      default:
        return 0;
    }
  }
  void forget(Side& side, const RegionInfo& region) {
    if (GetParam().where != Where::kDeregistered) {
      EXPECT_EQ(side.deregister(region), 0);
    }
  }

  /// Where the operation is in the memory of either end.
  struct Ends {
    std::uint64_t local, remote;
  };
  /// What an atomic finds, and that it compares.
  void prepare(const Request& request, const Ends& ends) {
    if (operation() == Operation::kCompareSwap)
      stage_->pair.b.store(stage_->remote, ends.remote, request.compare_add);
    if (atomic()) found_ = stage_->pair.b.load(stage_->remote, ends.remote);
  }
  /// Its bytes and no others, of an operation that was allowed.
  void expect_moved(const Request& request, const Ends& ends) {
    Side &a = stage_->pair.a, &b = stage_->pair.b;
    if (atomic()) {
      EXPECT_EQ(a.load(stage_->local, ends.local), found_) << "what was there";
      EXPECT_EQ(b.load(stage_->remote, ends.remote), operation() == Operation::kCompareSwap
                                                         ? request.swap
                                                         : found_ + request.compare_add);
    } else {
      EXPECT_EQ(a.peek(stage_->local, ends.local, length()),
                b.peek(stage_->remote, ends.remote, length()));
    }
    const bool brings = atomic() || operation() == Operation::kRead;
    const bool leaves = operation() != Operation::kRead;
    expect_unchanged_beside(a, stage_->local, kLocalSeed, ends.local, brings ? length() : 0);
    expect_unchanged_beside(b, stage_->remote, kRemoteSeed, ends.remote, leaves ? length() : 0);
  }

  static std::unique_ptr<Stage> stage_;
  bool failed_ = false;  ///< the queue pairs are in error

 private:
  static void expect_unchanged_beside(Side& side, const RegionInfo& whole, std::uint32_t seed,
                                      std::uint64_t at, std::uint64_t length) {
    const auto bytes = side.peek(whole, 0, 4 * kPage);
    for (std::uint64_t i = 0; i < bytes.size(); ++i) {
      if (i < at || i >= at + length) {
        ASSERT_EQ(bytes[i], pattern_byte(seed, i)) << "at offset " << i;
      }
    }
  }
  RegionInfo changed(Side& side, const RegionInfo& made, int what, std::uint64_t place,
                     std::string& refused) {
    AllowedLog may_not_know_it("rereg");
    const int error =
        side.call<&Endpoint::reregister>(made.id, what, place, kPage, GetParam().rights);
    refused = unless_unsupported("ibv_rereg_mr", error);
    return side.call<&Endpoint::region_info>(made.id);
  }

  std::uint64_t found_ = 0;  ///< by the atomic
};

std::unique_ptr<Stage> Access::stage_;

class AccessFromAfar : public Access {};
TEST_P(AccessFromAfar, IsWhatItsRegionSays) {
  Pair& pair = stage_->pair;
  std::string refused;
  const RegionInfo target = region_under_test(pair.b, stage_->remote, refused);
  if (!refused.empty()) forget(pair.b, target);
  SKIP_IF(refused);
  Request request = request_of(operation(), slice(stage_->local, 0, length()), target, offset());
  if (GetParam().where == Where::kTooLong && !atomic()) {
    request.from = slice(stage_->local, 0, kPage + 1);
    request.remote_address = target.address;
  }
  const bool allowed = rights_suffice() && in_place();
  const Ends ends{0, kPage + offset()};
  if (allowed) prepare(request, ends);
  expect_posted(pair.a.post_send(pair.qa, request));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  if (allowed) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    expect_moved(request, ends);
  } else {
    failed_ = true;
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << ibv_wc_status_str(wc.status);
    if (quirk_of(pair.qb.vendor, kNoEventsOfResponders).empty()) {
      const AsyncEvent event = pair.b.take_async_event();
      EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
      EXPECT_EQ(event.qp, pair.qb.id);
    }
    EXPECT_EQ(pair.a.mismatch(stage_->local, 0, 4 * kPage, kLocalSeed), -1);
    EXPECT_EQ(pair.b.mismatch(stage_->remote, 0, 4 * kPage, kRemoteSeed), -1);
  }
  forget(pair.b, target);
}
INSTANTIATE_TEST_SUITE_P(, AccessFromAfar, ::testing::ValuesIn(remote_cells()), cell_name);

class AccessFromHome : public Access {};
TEST_P(AccessFromHome, IsWhatItsRegionSays) {
  Pair& pair = stage_->pair;
  const bool receives = operation() == Operation::kReceive;
  Side& side = receives ? pair.b : pair.a;
  const RegionInfo& whole = receives ? stage_->remote : stage_->local;
  std::string refused;
  const RegionInfo mine = region_under_test(side, whole, refused);
  if (!refused.empty()) forget(side, mine);
  SKIP_IF(refused);
  const bool too_long = GetParam().where == Where::kTooLong;
  const Slice piece = too_long ? slice(mine, 0, kPage + 1) : slice(mine, offset(), length());
  const Slice other = slice(stage_->local, 0, length());
  expect_posted(pair.b.post_receive(
      pair.qb, receive(2, receives ? piece : slice(stage_->remote, 0, 2 * kPage))));
  Request request = receives ? send(1, other) : request_of(operation(), piece, stage_->remote, 0);
  if (atomic() && too_long) request.from = slice(mine, kPage - 7, 8);
  const bool by_packets = pair.a.here().context()->device->ibdev_path[0] != '\0';
  // A receive may reach out as long as its message does not (receive_part_test.cpp).
  const bool fits = receives && too_long && rights_suffice();
  const bool allowed = rights_suffice() && (in_place() || fits);
  const std::uint64_t at = kPage + (too_long ? 0 : offset());
  const Ends ends = receives ? Ends{0, at} : Ends{at, 0};
  if (allowed) prepare(request, ends);
  expect_posted(pair.a.post_send(pair.qa, request));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  if (allowed) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    if (operation() == Operation::kSend || receives) {
      EXPECT_EQ(pair.b.poll_receives(pair.qb, 1)[0].byte_len, length());
    } else {
      failed_ = true;  // leaves a receive behind, which the next connection must not find
    }
    expect_moved(request, ends);
  } else {
    failed_ = true;
    expect_error(wc, request.wr_id, receives ? IBV_WC_REM_OP_ERR : IBV_WC_LOC_PROT_ERR, pair.qa);
    if (receives) {
      expect_error(pair.b.poll_receives(pair.qb, 1)[0], 2, IBV_WC_LOC_PROT_ERR, pair.qb);
    }
    if (by_packets && (atomic() || too_long)) {
      // Packets before the fault have arrived, an atomic whose answer had nowhere to go was done,
      // and what is still under way must not find another connection of the same numbers.
      forget(side, mine);
      stage_.reset();
      failed_ = false;
      return;
    }
    EXPECT_EQ(pair.a.mismatch(stage_->local, 0, 4 * kPage, kLocalSeed), -1);
    EXPECT_EQ(pair.b.mismatch(stage_->remote, 0, 4 * kPage, kRemoteSeed), -1);
  }
  forget(side, mine);
}
INSTANTIATE_TEST_SUITE_P(, AccessFromHome, ::testing::ValuesIn(local_cells()), cell_name);

}  // namespace
}  // namespace verbatim::harness
