#include "peal/system/thread_count.h"

#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/testing/soon.h"

namespace peal {
namespace {

TEST(ThreadCountTest, AThreadCountsUntilItHasEnded) {
  const int before = thread_count();
  std::promise<void> end;
  std::thread thread([&] { end.get_future().wait(); });
  EXPECT_EQ(thread_count(), before + 1);
  EXPECT_FALSE(has_one_thread(Deadline::after(std::chrono::milliseconds(2))));
  end.set_value();
  thread.join();
  const Deadline limit = soon();
  while (thread_count() > before && !limit.passed()) std::this_thread::yield();
  EXPECT_EQ(thread_count(), before);
}

}  // namespace
}  // namespace peal
