#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/group/process_group.h"
#include "peal/group/testing/idle_backend.h"
#include "peal/system/private_folder.h"
#include "peal/system/stop_flag.h"

namespace peal {
namespace {

using testing::Asked;
using ::testing::ElementsAre;
using testing::IdleBackend;

/// Rank 0, whose backend leaves all data as they are: so the answer is that of this rank.
class ShouldStopTest : public ::testing::Test {
 protected:
  const PrivateFolder folder_{"peal-should-stop-test."};
  const std::string path_ = folder_.path() / "rank-0";
  const StopFlag flag_ = StopFlag::create(path_);
  std::unique_ptr<IdleBackend> owned_ = std::make_unique<IdleBackend>(2);
  const std::vector<Asked>& asked_ = owned_->asked();
  ProcessGroup group_{std::move(owned_), {.stop_flag = path_}};
};

TEST_F(ShouldStopTest, EachCallIsAnAllReduceOfOneByte) {
  EXPECT_FALSE(group_.should_stop());
  EXPECT_FALSE(group_.should_stop());
  EXPECT_THAT(asked_,
              ElementsAre(Asked{Operation::kAllReduce, 1_B}, Asked{Operation::kAllReduce, 1_B}));
}

TEST_F(ShouldStopTest, ARequestStays) {
  EXPECT_FALSE(group_.should_stop());
  flag_.set(0);
  EXPECT_TRUE(group_.should_stop());
  EXPECT_TRUE(group_.should_stop());
}

TEST_F(ShouldStopTest, TheFirstCallBeginsToLookAndTheEndOfTheGroupEndsIt) {
  EXPECT_FALSE(flag_.is_watched());
  {
    ProcessGroup group(std::make_unique<IdleBackend>(2), {.stop_flag = path_});
    group.should_stop();
    EXPECT_TRUE(flag_.is_watched());
  }
  EXPECT_FALSE(flag_.is_watched());
}

TEST_F(ShouldStopTest, ASubgroupHasTheFlagOfItsProcess) {
  const ProcessGroupPtr part = group_.new_group(std::vector<Rank>{0});
  flag_.set(0);
  EXPECT_TRUE(part->should_stop());
}

TEST_F(ShouldStopTest, AGroupThatWasDestroyedIsAnError) {
  group_.should_stop();
  EXPECT_TRUE(flag_.is_watched());
  group_.destroy();
  EXPECT_FALSE(flag_.is_watched());
  EXPECT_EQ(error_of([&] { group_.should_stop(); }).kind(), ErrorKind::kUsage);
  EXPECT_FALSE(flag_.is_watched());
}

}  // namespace
}  // namespace peal
