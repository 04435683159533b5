#include "peal/base/guarded.h"

#include <memory>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace peal {
namespace {

const auto kNothing = [](int&) {};

TEST(GuardedTest, ConcurrentUsesAreNotLost) {
  Guarded<int> count(0);
  const auto add = [&] {
    for (int i = 0; i < 1000; ++i) count.with([](int& value) { ++value; });
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(count.with([](int& value) { return value; }), 2000);
}

TEST(GuardedTest, AnUpdateWakesAWaitingThread) {
  Guarded<int> value(0);
  std::thread other([&] { value.update([](int& v) { v = 7; }); });
  int seen = 0;
  EXPECT_TRUE(value.wait(
      Deadline::after(std::chrono::seconds(10)),
      [](const int& v) { return v != 0; },
      [&](int& v) { seen = v; }));
  other.join();
  EXPECT_EQ(seen, 7);
}

TEST(GuardedTest, AnUpdateThatThrowsReleasesTheMutex) {
  Guarded<int> value(0);
  const auto fail = [](int& v) {
    v = 1;
    throw std::runtime_error("half way");
  };
  EXPECT_THROW(value.update(fail), std::runtime_error);
  EXPECT_EQ(value.with([](int& v) { return v; }), 1);
}

TEST(GuardedTest, AThreadThatSeesAnUpdateMayDestroyTheValue) {
  const auto is_done = [](const bool& done) { return done; };
  for (int round = 0; round < 200; ++round) {
    auto value = std::make_unique<Guarded<bool>>(false);
    std::thread other([&shared = *value] { shared.update([](bool& done) { done = true; }); });
    EXPECT_TRUE(value->wait(Deadline::after(std::chrono::seconds(10)), is_done, [](bool&) {}));
    value.reset();
    other.join();
  }
}

TEST(GuardedTest, AWaitEndsAtTheDeadline) {
  Guarded<int> value(0);
  const auto never = [](const int&) { return false; };
  EXPECT_FALSE(value.wait(Deadline::after(Timeout(0)), never, kNothing));
  EXPECT_FALSE(value.wait(Deadline::after(Timeout(1)), never, kNothing));
}

TEST(GuardedTest, AReadyValueIsReturnedEvenAfterTheDeadline) {
  Guarded<int> value(1);
  const auto ready = [](const int& v) { return v == 1; };
  EXPECT_TRUE(value.wait(Deadline(TimePoint()), ready, kNothing));
  EXPECT_TRUE(value.wait(Deadline(TimePoint::max()), ready, kNothing));
}

}  // namespace
}  // namespace peal
