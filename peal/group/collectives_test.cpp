#include "peal/group/collectives.h"

#include <algorithm>
#include <array>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/group/process_group.h"
#include "peal/group/testing/idle_backend.h"

namespace peal {
namespace {

using testing::Asked;
using ::testing::HasSubstr;
using testing::IdleBackend;
using ::testing::IsEmpty;

TEST(CollectivesTest, AMonitoredBarrierIsUnsupportedWithoutSendOrReceive) {
  for (const Operation other : {Operation::kSend, Operation::kRecv}) {
    Capabilities capabilities = testing::everything();
    capabilities.operations = EnumSet<Operation>::of(std::array{other});
    auto backend = std::make_unique<IdleBackend>(2, capabilities);
    const auto& asked = backend->asked();
    ProcessGroup group(std::move(backend), {});
    const Error error = error_of([&] { group.monitored_barrier(); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("which the test backend cannot do: use barrier"));
    EXPECT_THAT(asked, IsEmpty());
  }
}

TEST(CollectivesTest, AMonitoredBarrierNeedsBytes) {
  Capabilities capabilities = testing::everything();
  capabilities.dtypes = EnumSet<DType>::of(std::array{DType::kF32});
  ProcessGroup group(std::make_unique<IdleBackend>(2, capabilities), {});
  EXPECT_EQ(error_of([&] { group.monitored_barrier(); }).kind(), ErrorKind::kUnsupported);
}

TEST(CollectivesTest, AMonitoredBarrierCostsThreeMessagesForEachOtherRank) {
  auto backend = std::make_unique<IdleBackend>(3);
  const auto& asked = backend->asked();
  ProcessGroup group(std::move(backend), {});
  group.monitored_barrier();
  EXPECT_EQ(std::ranges::count(asked, Asked{Operation::kSend, 1_B}), 4);
  EXPECT_EQ(asked.size(), 6U);
}

}  // namespace
}  // namespace peal
