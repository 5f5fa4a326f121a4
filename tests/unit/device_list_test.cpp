// SPDX-License-Identifier: BSD-2-Clause
// The device list: whose devices, how long they live, and what is said when there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "runtime/base/make_nothrow.hpp"
#include "tests/support/fake_kernel_provider.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/null_provider.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"
#include "tests/unit/providers_under_test.hpp"

namespace verbatim::unit {
namespace {

using ::testing::HasSubstr;

TEST(DeviceList, ShowsTheDevicesOfAllProviders) {
  int count = -1;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "null0");
  EXPECT_STREQ(ibv_get_device_name(list[1]), "fakek0");
  EXPECT_EQ(list[2], nullptr);
  EXPECT_EQ(list[0]->node_type, IBV_NODE_UNSPECIFIED);
  EXPECT_STREQ(list[1]->dev_name, "uverbs0");
  EXPECT_STREQ(list[1]->ibdev_path, "/sys/class/infiniband/fakek0");
  EXPECT_EQ(ibv_get_device_guid(list[1]), 0x0102030405060708u);
  EXPECT_EQ(ibv_get_device_index(list[0]), -1);
  EXPECT_EQ(ibv_get_device_index(list[1]), 3);
  EXPECT_EQ(ibv_get_device_name(nullptr), nullptr);
  ibv_free_device_list(list);
}

TEST(DeviceList, MayBeAskedWithoutACount) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_free_device_list(list);
  ibv_free_device_list(nullptr);
}

TEST(DeviceList, KeepsOneObjectPerDeviceWhileItIsHeld) {
  ibv_device** const first = ibv_get_device_list(nullptr);
  ibv_device** const second = ibv_get_device_list(nullptr);
  EXPECT_EQ(first[0], second[0]);
  ibv_free_device_list(first);
  EXPECT_STREQ(ibv_get_device_name(second[0]), "null0") << "the second list still holds it";
  ibv_free_device_list(second);
}

TEST(DeviceList, AnOpenedDeviceOutlivesItsList) {
  ibv_context* const context = open_by_name("fakek0");
  ASSERT_NE(context, nullptr);
  EXPECT_STREQ(context->device->name, "fakek0");
  ibv_device** const list = ibv_get_device_list(nullptr);
  EXPECT_EQ(list[1], context->device);
  EXPECT_EQ(Device::from(list[1]).references.load(), 2u) << "the context and this list";
  ibv_free_device_list(list);
  EXPECT_EQ(Device::from(context->device).references.load(), 1u);
  EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(DeviceList, EveryOpenGivesAContextOfItsOwn) {
  ibv_context* const one = open_by_name("null0");
  ibv_context* const two = open_by_name("null0");
  ASSERT_NE(one, nullptr);
  ASSERT_NE(two, nullptr);
  EXPECT_NE(one, two);
  EXPECT_EQ(one->device, two->device);
  EXPECT_EQ(ibv_close_device(one), 0);
  EXPECT_EQ(ibv_close_device(two), 0);
}

/// A provider that takes its time, as one that asks the kernel may.
std::atomic<bool> is_asked{false};
std::atomic<bool> may_answer{true};
int list_slowly(DeviceSink& sink) noexcept {
  is_asked.store(true);
  while (!may_answer.load()) std::this_thread::yield();
  return null::kProvider.list_devices(sink);
}

TEST(DeviceList, IsGivenToAChildThatWasForkedWhileAnotherThreadAskedForIt) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  ProviderTable slow = null::kProvider;
  slow.list_devices = list_slowly;
  const Providers only{&slow};
  is_asked.store(false);
  may_answer.store(false);
  std::thread asks([] { ibv_free_device_list(ibv_get_device_list(nullptr)); });
  while (!is_asked.load()) std::this_thread::yield();
  EXPECT_EQ(harness::run_in_child([] {
              may_answer.store(true);
              ibv_device** const list = ibv_get_device_list(nullptr);
              if (list == nullptr || list[0] == nullptr || list[1] != nullptr) return 1;
              ibv_free_device_list(list);
              return 0;
            }),
            0);
  may_answer.store(true);
  asks.join();
}

TEST(DeviceList, IsNeverSilentlyEmptyWithoutAProvider) {
  const Providers none{};
  const CapturedStderr captured;
  errno = 0;
  int count = -1;
  EXPECT_EQ(ibv_get_device_list(&count), nullptr);
  EXPECT_EQ(errno, ENOSYS);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(captured.lines(), 1);
  EXPECT_THAT(captured.text(), HasSubstr("no provider"));
}

struct Empty {
  static constexpr const char* kName = "empty";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;
  static int list_devices(DeviceSink&) noexcept { return 0; }
  static int open(Device&, verbatim::Context**) noexcept { return ENODEV; }
  static void close(verbatim::Context&) noexcept {}
};
constinit const ProviderTable kEmpty = make_provider_table<Empty>();

TEST(DeviceList, IsNeverSilentlyEmptyWithoutADevice) {
  const Providers only{&kEmpty};
  const CapturedStderr captured;
  errno = 0;
  EXPECT_EQ(ibv_get_device_list(nullptr), nullptr);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(captured.lines(), 1);
  EXPECT_THAT(captured.text(), HasSubstr("no device"));
  EXPECT_THAT(captured.text(), HasSubstr("empty"));
}

struct Failing : Empty {
  static constexpr const char* kName = "failing";
  static int list_devices(DeviceSink& sink) noexcept {
    const int error = sink.add({.name = "half0"});
    return error != 0 ? error : EACCES;
  }
};
constinit const ProviderTable kFailing = make_provider_table<Failing>();

TEST(DeviceList, KeepsWhatAFailingProviderFoundAndReportsTheRest) {
  const Providers both{&kFailing, &null::kProvider};
  const CapturedStderr captured;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(list[0]->name, "half0");
  EXPECT_THAT(captured.text(), HasSubstr("failing"));
  errno = 0;
  EXPECT_EQ(ibv_open_device(list[0]), nullptr);
  EXPECT_EQ(errno, ENODEV);
  ibv_free_device_list(list);
}

/// A device that can be taken out and put in again, as another one.
struct Replaced : Empty {
  static constexpr const char* kName = "replaced";
  static inline __be64 guid = 1;
  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name = "same0", .dev_name = "uverbs0", .guid = guid});
  }
};
constinit const ProviderTable kReplaced = make_provider_table<Replaced>();

TEST(DeviceList, ShowsADeviceThatCameBackAsAnotherOne) {
  const Providers only{&kReplaced};
  ibv_device** const before = ibv_get_device_list(nullptr);
  Replaced::guid = 2;
  const CapturedStderr captured;
  ibv_device** const after = ibv_get_device_list(nullptr);
  ASSERT_NE(after, nullptr);
  EXPECT_NE(before[0], after[0]);
  EXPECT_EQ(ibv_get_device_guid(before[0]), 1u) << "who holds the old one keeps it";
  EXPECT_EQ(ibv_get_device_guid(after[0]), 2u);
  EXPECT_EQ(after[1], nullptr);
  EXPECT_EQ(captured.lines(), 0);
  ibv_free_device_list(before);
  ibv_device** const again = ibv_get_device_list(nullptr);
  EXPECT_EQ(again[0], after[0]);
  ibv_free_device_list(again);
  ibv_free_device_list(after);
}

struct Copycat : Empty {
  static constexpr const char* kName = "copycat";
  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name = "null0"}) | sink.add({.name = "copy0"}) | sink.add({.name = "copy0"});
  }
};
constinit const ProviderTable kCopycat = make_provider_table<Copycat>();

TEST(DeviceList, ReportsANameThatIsOfferedTwice) {
  const Providers both{&null::kProvider, &kCopycat};
  const CapturedStderr captured;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_EQ(count, 2);
  EXPECT_EQ(Device::from(list[0]).provider, &null::kProvider) << "the first provider keeps it";
  EXPECT_STREQ(list[1]->name, "copy0");
  EXPECT_EQ(captured.lines(), 2);
  EXPECT_THAT(captured.text(), HasSubstr("null0"));
  EXPECT_THAT(captured.text(), HasSubstr("copycat"));
  ibv_free_device_list(list);
}

struct LongNamed : Empty {
  static constexpr const char* kName = "long";
  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name =
                         "a-name-of-more-than-sixty-four-characters-which-does-not-fit-into-the-"
                         "public-field"});
  }
};
constinit const ProviderTable kLongNamed = make_provider_table<LongNamed>();

TEST(DeviceList, CutsNamesToThePublicField) {
  const Providers only{&kLongNamed};
  ibv_device** const list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(std::strlen(list[0]->name), sizeof list[0]->name - 1);
  ibv_free_device_list(list);
}

TEST(DeviceList, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        ibv_context* const context = open_by_name(round % 2 == 0 ? "null0" : "fakek0");
        ASSERT_NE(context, nullptr);
        ASSERT_EQ(ibv_close_device(context), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DeviceList, OpeningNothingIsRefused) {
  errno = 0;
  EXPECT_EQ(ibv_open_device(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// Libraries of other vendors ask whether a device is theirs by reading behind the public struct.
TEST(Device, HasAReadableTailOfZeroes) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(list[0]);
  for (std::size_t at = sizeof(ibv_device); at < 712; ++at) EXPECT_EQ(bytes[at], 0) << at;
  ibv_free_device_list(list);
}

}  // namespace
}  // namespace verbatim::unit
