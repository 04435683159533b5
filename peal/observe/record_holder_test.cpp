#include "peal/observe/record_holder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/system/fd.h"

namespace peal::observe {
namespace {

/// Calls `body` in a child process.
RecordHolder holder_in_child(const std::function<RecordHolder()>& body) {
  return static_cast<RecordHolder>(in_child(body));
}

class RecordHolderTest : public ::testing::Test {
 protected:
  RecordHolder holder() const { return holder_of_record(options_.path); }

  const TestFolder folder_;
  const RecorderOptions options_ = small_record(folder_.path());
};

TEST_F(RecordHolderTest, AMissingOrAbandonedRecordIsFree) {
  EXPECT_EQ(holder(), RecordHolder::kNobody);
  { FlightRecorder::make(options_); }  // like a group that was destroyed
  EXPECT_EQ(holder(), RecordHolder::kNobody);
}

TEST_F(RecordHolderTest, AProcessHoldsItsRecordUntilItLeavesTheGroup) {
  const auto recorder = FlightRecorder::make(options_);
  EXPECT_EQ(holder(), RecordHolder::kThisProcess);
  recorder->left(Departure::kNormal);
  EXPECT_EQ(holder(), RecordHolder::kNobody);
}

TEST_F(RecordHolderTest, ADescendantNeverTakesTheRecordOfARankInItsGroup) {
  const auto recorder = FlightRecorder::make(options_);
  EXPECT_EQ(holder_in_child([&] { return holder(); }), RecordHolder::kAnother);
  EXPECT_EQ(holder_in_child([&] { return holder_in_child([&] { return holder(); }); }),
            RecordHolder::kAnother);
}

TEST_F(RecordHolderTest, ADescendantInTheSameJobDoesNotTakeTheRecordAfterTheRankLeft) {
  const auto recorder = FlightRecorder::make(options_);
  recorder->left(Departure::kNormal);
  const auto holder_in = [&](const std::string& job) {
    return holder_in_child([&] { return holder_of_record(options_.path, job); });
  };
  EXPECT_EQ(holder_in(options_.job), RecordHolder::kAnother);
  EXPECT_EQ(holder_in("another"), RecordHolder::kNobody);
  EXPECT_EQ(holder_in(""), RecordHolder::kNobody);
}

TEST_F(RecordHolderTest, ARankTakesTheRecordOfItsChildProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t inner = ::fork();
  if (inner == 0) {
    const auto recorder = FlightRecorder::make(options_);
    if (::write(writer.get(), "r", 1) == 1) ::pause();
    ::_exit(0);
  }
  char ready = 0;
  ASSERT_EQ(::read(reader.get(), &ready, 1), 1);
  EXPECT_EQ(holder(), RecordHolder::kNobody);
  // For an unrelated process the record belongs to another.
  EXPECT_EQ(holder_in_child([&] { return holder(); }), RecordHolder::kAnother);
  ::kill(inner, SIGKILL);
  ::waitpid(inner, nullptr, 0);
}

}  // namespace
}  // namespace peal::observe
