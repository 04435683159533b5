#include "peal/system/recycled.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace peal {
namespace {

struct Wide {
  alignas(64) std::array<char, 100> bytes = {};
};

TEST(RecycledTest, AnObjectGetsTheMemoryOfOneThatIsGone) {
  struct Own {
    int value;
  };
  const auto make = [](int value) {
    return std::allocate_shared<Own>(RecyclingAllocator<Own>(), Own{value});
  };
  auto first = make(1);
  const auto second = make(2);
  const Own* const place = first.get();
  EXPECT_NE(place, second.get());
  first.reset();
  const auto third = make(3);
  EXPECT_EQ(third.get(), place);
  EXPECT_EQ(third->value, 3);
  EXPECT_EQ(second->value, 2);
}

TEST(RecycledTest, BlocksAreAlignedForTheObject) {
  for (int i = 0; i < 3; ++i) {
    void* const block = RecycledBlocks<Wide>::take();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignof(Wide), 0u);
    RecycledBlocks<Wide>::put_back(block);
  }
}

TEST(RecycledTest, NoBlockBelongsToTwoThreads) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int round = 0; round < 2000; ++round) {
        int* const block = static_cast<int*>(RecycledBlocks<int>::take());
        *block = thread;
        std::this_thread::yield();
        EXPECT_EQ(*block, thread);
        RecycledBlocks<int>::put_back(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RecycledTest, AForkedChildReleasesItsCopyAndTakesItsOwn) {
  auto object = std::allocate_shared<long>(RecyclingAllocator<long>(), 7L);
  const pid_t child = fork();
  if (child == 0) {
    object.reset();
    const auto own = std::allocate_shared<long>(RecyclingAllocator<long>(), 8L);
    _exit(*own == 8 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*object, 7);
}

}  // namespace
}  // namespace peal
