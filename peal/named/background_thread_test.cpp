#include "peal/named/background_thread.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;

void wait_for(const std::atomic<int>& counter, int value) {
  const Deadline deadline = Deadline::after(30s);
  while (counter < value && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(counter, value);
}

TEST(BackgroundThreadTest, WorksWhenItIsWoken) {
  std::atomic<int> runs = 0;
  BackgroundThread thread({.run = [&] { ++runs; }, .is_left = [] { return false; }});
  thread.start();
  EXPECT_EQ(runs, 0);
  const Deadline deadline = Deadline::after(30s);
  while (runs < 3 && !deadline.passed()) {
    thread.wake();  // has no effect while the thread still works
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(runs, 3);
}

TEST(BackgroundThreadTest, WorksAgainWhileSomethingIsLeft) {
  std::atomic<int> runs = 0;
  BackgroundThread thread({.run = [&] { ++runs; }, .is_left = [&] { return runs < 5; }});
  thread.wake();
  wait_for(runs, 5);
}

TEST(BackgroundThreadTest, AFailedStartIsTriedAgain) {
  std::atomic<int> runs = 0;
  int starts = 0;
  BackgroundThread thread({.run = [&] { ++runs; }, .is_left = [] { return false; }},
                          [&](std::function<void()> body) {
                            if (++starts < 3) throw Error(ErrorKind::kResource, "no thread");
                            return std::thread(std::move(body));
                          });
  EXPECT_THROW(thread.start(), Error);
  EXPECT_THROW(thread.wake(), Error);
  thread.wake();
  wait_for(runs, 1);
  EXPECT_EQ(starts, 3);
}

TEST(BackgroundThreadTest, AStopEndsASleepOfTheWork) {
  std::atomic<int> sleeps = 0;
  BackgroundThread* self = nullptr;
  bool was_stopped = false;
  BackgroundThread thread({.run =
                               [&] {
                                 ++sleeps;
                                 was_stopped = self->sleep(Deadline::after(30s));
                               },
                           .is_left = [] { return true; }});
  self = &thread;
  thread.wake();
  wait_for(sleeps, 1);
  thread.stop();
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace peal::named
