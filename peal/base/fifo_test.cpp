#include "peal/base/fifo.h"

#include <memory>

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(FifoTest, ItemsComeOutInTheOrderInWhichTheyWentIn) {
  for (int length = 1; length < 70; ++length) {
    Fifo<int> queue;
    int pushed = 0, popped = 0;
    for (; pushed < length; ++pushed) queue.push(pushed);
    for (int turn = 0; turn < 300; ++turn) {  // at its length, as a queue that is never empty
      ASSERT_EQ(queue.pop(), popped++);
      queue.push(pushed++);
      ASSERT_EQ(*queue.begin(), popped);
      ASSERT_EQ(queue.end() - queue.begin(), length);
    }
    while (!queue.empty()) ASSERT_EQ(queue.pop(), popped++);
    EXPECT_EQ(popped, pushed);
  }
}

TEST(FifoTest, KeepsNoItemThatWasTaken) {
  Fifo<std::shared_ptr<int>> queue;
  const auto item = std::make_shared<int>(1);
  queue.push(item);
  queue.push(item);
  EXPECT_EQ(queue.pop(), item);
  EXPECT_EQ(item.use_count(), 2);
  queue.pop();
  EXPECT_EQ(item.use_count(), 1);
}

TEST(FifoTest, AQueueThatIsNeverEmptyStaysSmall) {
  Fifo<int> queue;
  queue.push(0);
  const int* lowest = nullptr;
  for (int i = 1; i < 10'000; ++i) {
    queue.push(i);
    queue.pop();
    if (i > 10) {
      if (lowest == nullptr) lowest = &*queue.begin();
      EXPECT_LT(&*queue.begin() - lowest, 64) << "at item " << i;
    }
  }
}

}  // namespace
}  // namespace peal
