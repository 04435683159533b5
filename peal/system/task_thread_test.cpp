#include "peal/system/task_thread.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal {
namespace {

using ::testing::ElementsAre;

TEST(TaskThreadTest, TasksRunInOrderOnAnotherThread) {
  TaskThread tasks;
  tasks.start();
  std::vector<int> done;
  std::vector<std::thread::id> where;
  for (const int task : {1, 2, 3}) {
    tasks.post([&, task] {
      done.push_back(task);
      where.push_back(std::this_thread::get_id());
    });
  }
  tasks.close();
  EXPECT_THAT(done, ElementsAre(1, 2, 3));
  for (const std::thread::id id : where) {
    EXPECT_EQ(id, where.front());
    EXPECT_NE(id, std::this_thread::get_id());
  }
}

TEST(TaskThreadTest, PostDoesNotWaitForALongTask) {
  TaskThread tasks;
  tasks.start();
  std::promise<void> go;
  std::promise<void> last;
  tasks.post([&] { go.get_future().wait(); });
  tasks.post([&] { last.set_value(); });  // if this waited, the first task would never end
  go.set_value();
  last.get_future().wait();
}

TEST(TaskThreadTest, ATaskMayPostAnother) {
  TaskThread tasks;
  tasks.start();
  std::promise<void> second;
  tasks.post([&] { tasks.post([&] { second.set_value(); }); });
  second.get_future().wait();
}

TEST(TaskThreadTest, CloseReturnsWhenAllTasksHaveRun) {
  int done = 0;
  TaskThread tasks;
  tasks.start();
  for (int i = 0; i < 100; ++i) {
    tasks.post([&] {
      std::this_thread::yield();
      ++done;
    });
  }
  tasks.close();
  EXPECT_EQ(done, 100);
  tasks.close();
}

TEST(TaskThreadTest, WithoutAThreadATaskRunsOnTheCallingThread) {
  TaskThread tasks;
  std::vector<std::thread::id> where;
  const auto task = [&] { where.push_back(std::this_thread::get_id()); };
  tasks.post(task);
  tasks.start();
  tasks.start();
  tasks.close();
  tasks.post(task);
  tasks.start();  // too late
  tasks.post(task);
  const auto here = std::this_thread::get_id();
  EXPECT_THAT(where, ElementsAre(here, here, here));
}

TEST(TaskThreadTest, NoTaskIsLostDuringClose) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> done = 0;
    TaskThread tasks;
    tasks.start();
    std::thread other([&] {
      for (int i = 0; i < 20; ++i) tasks.post([&] { ++done; });
    });
    tasks.close();
    other.join();
    EXPECT_EQ(done, 20);
  }
}

}  // namespace
}  // namespace peal
