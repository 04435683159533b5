#include "peal/backends/native/fault_injector.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/backends/native/native.h"
#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::native {
namespace {

FaultPlan killed_at(int operation) {
  return parse_faults("rank 0 kill at operation " + std::to_string(operation));
}

/// A group of one.
ProcessGroupPtr join(const FaultPlan& faults, Report report = silent_report()) {
  Options options;
  options.world_ranks = {0};
  options.faults = faults;
  options.report = std::move(report);
  return std::make_shared<ProcessGroup>(
      make_backend(std::move(options), Deadline::after(std::chrono::minutes(1))),
      ProcessGroup::Options{});
}

TEST(FaultInjectorTest, ARankWithoutFaultsInThePlanHasNoInjector) {
  EXPECT_EQ(FaultInjector::try_make({}, 0), nullptr);
  EXPECT_EQ(FaultInjector::try_make(killed_at(1), 1), nullptr);
  EXPECT_NE(FaultInjector::try_make(killed_at(1), 0), nullptr);
}

TEST(FaultInjectorDeathTest, ARankIsKilledWhenItBeginsTheOperation) {
  const auto injector = FaultInjector::try_make(killed_at(3), 0);
  injector->begin_operation();
  injector->begin_operation();
  EXPECT_EXIT(injector->begin_operation(), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(FaultInjectorTest, AFreezeWithALengthEndsByItself) {
  const auto injector =
      FaultInjector::try_make(parse_faults("rank 0 freeze at operation 1 for 100 ms"), 0);
  const TimePoint begin = Clock::now();
  injector->begin_operation();
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(100));
}

TEST(FaultInjectorTest, FaultsNeverReachedAreReportedOnceWhenTheGroupEnds) {
  std::vector<std::string> reports;
  ProcessGroupPtr group =
      join(parse_faults("rank 0 freeze at operation 2 for 1 ms; rank 0 kill at operation 3; "
                        "rank 0 freeze at operation 9"),
           [&](std::string_view text) { reports.emplace_back(text); });
  group->barrier();
  group->barrier();
  EXPECT_THAT(reports, ::testing::IsEmpty());
  group->destroy();
  group.reset();
  EXPECT_THAT(reports,
              ::testing::ElementsAre(
                  "injected faults that were never reached: rank 0 kill at "
                  "operation 3; rank 0 freeze at operation 9; rank 0 has begun 2 operations in "
                  "all"));
}

TEST(FaultInjectorTest, FaultsThatWereReachedAreNotReported) {
  std::vector<std::string> reports;
  const ProcessGroupPtr group =
      join(parse_faults("rank 0 freeze at operation 1 for 1 ms; rank 1 kill at operation 9"),
           [&](std::string_view text) { reports.emplace_back(text); });
  group->barrier();
  group->destroy();
  EXPECT_THAT(reports, ::testing::IsEmpty());
}

TEST(FaultInjectorDeathTest, CollectivesAndMessagesAreCountedTogether) {
  const auto work = [](const ProcessGroupPtr& group) {
    std::vector<float> out(3, 1);
    std::vector<float> in(3);
    group->all_reduce(out);                     // 1
    group->all_reduce_async(out)->wait();       // 2
    const WorkPtr sent = group->isend(out, 0);  // 3
    group->recv(in, 0);                         // 4
    sent->wait();
    group->barrier();  // 5
    ::_exit(0);
  };
  EXPECT_EXIT(work(join(killed_at(5))), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(work(join(killed_at(4))), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(work(join(killed_at(6))), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace peal::native
