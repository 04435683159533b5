#include "peal/system/stop_requests.h"

#include <signal.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/system/private_folder.h"

namespace peal {
namespace {

class StopRequestsTest : public ::testing::Test {
 protected:
  const PrivateFolder folder_{"peal-stop-test."};
  const std::string path_ = folder_.path() / "rank-0";
};

TEST_F(StopRequestsTest, TheFlagOfTheLauncherIsARequestWithoutASignal) {
  const StopFlag flag = StopFlag::create(path_);
  const StopRequests requests(path_);
  EXPECT_FALSE(requests.has_come());
  flag.set(0);
  EXPECT_TRUE(requests.has_come());
  EXPECT_EQ(requests.signal(), 0);
  flag.set(SIGTERM);
  EXPECT_EQ(requests.signal(), SIGTERM) << "which the launcher has not sent";
}

TEST_F(StopRequestsTest, AFlagThatWasSetBeforeCounts) {
  StopFlag::create(path_).set(0);
  EXPECT_TRUE(StopRequests(path_).has_come());
}

TEST_F(StopRequestsTest, ASignalIsARequestWithAndWithoutAFlag) {
  const StopFlag flag = StopFlag::create(path_);
  for (const std::string& path : {path_, std::string()}) {
    const StopRequests requests(path);
    ::raise(SIGTERM);
    EXPECT_TRUE(requests.has_come()) << path;
    EXPECT_EQ(requests.signal(), SIGTERM) << path;
  }
}

TEST_F(StopRequestsTest, TheGuardSeesWhetherAnyProcessLooks) {
  const StopFlag flag = StopFlag::create(path_);
  EXPECT_FALSE(flag.is_watched());
  auto first = std::make_unique<StopRequests>(path_);
  auto second = std::make_unique<StopRequests>(path_);
  first.reset();
  EXPECT_TRUE(flag.is_watched());
  second.reset();
  EXPECT_FALSE(flag.is_watched());
}

TEST_F(StopRequestsTest, AForkedChildThatEndsDoesNotStopItsParentFromLooking) {
  const StopFlag flag = StopFlag::create(path_);
  auto requests = std::make_unique<StopRequests>(path_);
  EXPECT_EQ(in_child([&] {
              requests.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(flag.is_watched());
}

TEST_F(StopRequestsTest, AProcessThatHasEndedDoesNotLook) {
  const StopFlag flag = StopFlag::create(path_);
  EXPECT_EQ(in_child([&]() -> int {
              const StopRequests requests(path_);
              const bool was_watched = flag.is_watched();
              ::_exit(was_watched ? 0 : 1);  // as a process that is killed: without destructors
            }),
            0);
  EXPECT_FALSE(flag.is_watched());
}

TEST_F(StopRequestsTest, AFileThatIsNotAFlagIsIgnored) {
  EXPECT_FALSE(StopFlag::open(path_)) << "missing";
  folder_.write("empty", "");
  EXPECT_FALSE(StopFlag::open(folder_.path() / "empty"));
  folder_.write("longer", std::string(4096, 'x'));
  EXPECT_FALSE(StopFlag::open(folder_.path() / "longer"));
  EXPECT_FALSE(StopFlag::open(folder_.path()));
  EXPECT_FALSE(StopRequests(folder_.path() / "longer").has_come());
}

}  // namespace
}  // namespace peal
