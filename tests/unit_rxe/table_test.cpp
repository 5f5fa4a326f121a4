// SPDX-License-Identifier: BSD-2-Clause
// Slots of rxe's own that do nothing with a ring.
#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/provider.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

extern "C" const verbatim::ProviderTable verbs_provider_rxe;

namespace verbatim::rxe_test {
namespace {

// man ibv_dereg_mr: EBUSY with windows bound; the driver keeps the region and says EINVAL.
TEST(RxeTable, ARegionWithWindowsIsBusy) {
  FakeSystem system;
  Device device;
  rxe::Context context(device, 14, system);
  auto* const mr = make_nothrow<rxe::Mr>();
  mr->plain.context = context.handle();
  ASSERT_EQ(context.objects.claim(0), 0);
  system.error = EINVAL;
  EXPECT_EQ(verbs_provider_rxe.dereg_mr(*mr), EBUSY);
  EXPECT_EQ(context.objects.claim(0), EPROTO) << "the handle is still its";
  system.error = 0;
  EXPECT_EQ(verbs_provider_rxe.dereg_mr(*mr), 0);
}

}  // namespace
}  // namespace verbatim::rxe_test
