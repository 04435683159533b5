// The window of the memory transport. Its code is the same as for shared memory between processes;
// shm_test.cpp tests what differs.
#include "peal/transport/window/window.h"

#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/quickest.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/lone_window.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::kHang;
using ::testing::Not;
using testing::run_ranks;
using testing::SingleRankWindow;
using testing::test_deadline;
using ::testing::ThrowsMessage;

Notice notice_of(std::uint64_t sequence) {
  Notice notice{sequence, {}};
  notice.body.fill(sequence);
  return notice;
}

/// Waits as the engine does: checks and sleeps until the value is reached.
bool wait_until(Window& window, Rank rank, std::uint64_t value, Deadline deadline) {
  while (window.counter(rank, 0) < value) {
    if (deadline.passed()) return false;
    window.sleep_until(rank, 0, value, deadline);
  }
  return true;
}

TEST(WindowTest, CountersStartAtZeroAndAreSeenByAll) {
  const auto ranks = make_memory_transports(3);
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks[0]->window()->counter(rank, 0), 0u);
  ranks[1]->window()->signal(0, 7, {});
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->window()->ranks(), 3);
    EXPECT_EQ(rank->window()->counter(1, 0), 7u);
    EXPECT_EQ(rank->window()->counter(2, 0), 0u);
  }
}

TEST(WindowTest, ValuesOfATurnStayUntilItsLineIsReused) {
  const auto ranks = make_memory_transports(2);
  Window& writer = *ranks[1]->window();
  const Window& reader = *ranks[0]->window();
  for (std::uint64_t turn = 0; turn < Window::kTurns; ++turn) {
    *writer.cell(1, turn) = std::byte(turn);
    writer.signal(turn, turn + 1, {turn * 7, turn * 3});
  }
  for (std::uint64_t turn = 0; turn < Window::kTurns; ++turn) {
    EXPECT_EQ(reader.counter(1, turn), turn + 1);
    EXPECT_EQ(reader.remark(1, turn).check, turn * 7);
    EXPECT_EQ(*reader.cell(1, turn), std::byte(turn));
    EXPECT_EQ(reader.cell(1, 0) + Window::cell_offset(turn), reader.cell(1, turn));
  }
  writer.signal(Window::kTurns, 99, {});
  EXPECT_EQ(reader.counter(1, 0), 99u);
}

TEST(WindowTest, CountersHold63Bits) {
  const auto ranks = make_memory_transports(2);
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 63) - 1;
  ranks[0]->window()->signal(0, kLargest, {});
  EXPECT_EQ(ranks[1]->window()->counter(0, 0), kLargest);
}

TEST(WindowTest, AMessagesOnlyTransportHasNoWindow) {
  const auto ranks = make_memory_transports(2, {.sharing = MemoryOptions::Sharing::kMessagesOnly});
  EXPECT_EQ(ranks[0]->window(), nullptr);
}

TEST(WindowTest, AStageIsOneMemoryForAllRanks) {
  const auto ranks = make_memory_transports(2, {.stage = 5000_B});
  const auto stage = ranks[0]->window()->stage(1);
  EXPECT_GE(stage.size(), 5000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stage.data()) % 64, 0u);
  stage.back() = std::byte{42};
  EXPECT_EQ(ranks[1]->window()->stage(1).back(), std::byte{42});
  EXPECT_EQ(ranks[1]->window()->stage(0).back(), std::byte{0});
}

TEST(WindowTest, ASleeperWakesWhenTheValueIsReached) {
  const auto ranks = make_memory_transports(2);
  auto sleeper = std::async(std::launch::async,
                            [&] { return wait_until(*ranks[0]->window(), 1, 3, test_deadline()); });
  for (std::uint64_t value = 1; value <= 3; ++value) ranks[1]->window()->signal(0, value, {});
  EXPECT_TRUE(sleeper.get());
}

TEST(WindowTest, ASleepEndsAtItsDeadline) {
  const auto ranks = make_memory_transports(2);
  const TimePoint begin = Clock::now();
  EXPECT_FALSE(wait_until(*ranks[0]->window(), 1, 1, Deadline::after(milliseconds(30))));
  EXPECT_GE(Clock::now() - begin, milliseconds(30));
  EXPECT_LT(Clock::now() - begin, kHang);
}

TEST(WindowTest, ASleepForAValueThatIsReachedReturnsAtOnce) {
  const auto ranks = make_memory_transports(2);
  ranks[1]->window()->signal(0, 5, {});
  ranks[0]->window()->sleep_until(1, 0, 5, Deadline(TimePoint::max()));
  EXPECT_EQ(ranks[0]->window()->counter(1, 0), 5u);
}

TEST(WindowTest, WakeAllEndsTheNextSleepToo) {
  const auto ranks = make_memory_transports(2);
  Window& window = *ranks[0]->window();
  // A sleep without a wake-up lasts 100 ms; these sleeps do not begin.
  constexpr milliseconds kSleep(90);
  EXPECT_LT(quickest(kSleep,
                     [&] {
                       window.wake_all();
                       const TimePoint begin = Clock::now();
                       window.sleep_until(1, 0, 1, test_deadline());
                       return Clock::now() - begin;
                     }),
            kSleep);
}

TEST(WindowTest, WakeAllWakesTheSleeperOfThisRank) {
  const auto ranks = make_memory_transports(2);
  Window& window = *ranks[0]->window();
  std::atomic<bool> stop = false;
  auto sleeper = std::async(std::launch::async, [&] {
    int sleeps = 0;
    for (; !stop; ++sleeps) window.sleep_until(1, 0, 1, test_deadline());
    return sleeps;
  });
  const TimePoint begin = Clock::now();
  std::this_thread::sleep_for(milliseconds(5));  // so that the other thread most likely sleeps
  stop = true;
  window.wake_all();
  EXPECT_GE(sleeper.get(), 0);
  EXPECT_LT(Clock::now() - begin, kHang);
}

/// Many barriers by counters: every value depends on all values before.
TEST(WindowTest, ManyRanksThatSleepForEachOtherLoseNoWakeUp) {
  for (const int ranks : {2, 3, 8}) {
    const auto transports = make_memory_transports(ranks);
    const auto finished = run_ranks(ranks, [&](Rank self) {
      Window& window = *transports[static_cast<std::size_t>(self)]->window();
      const Deadline deadline = test_deadline();
      for (std::uint64_t round = 1; round <= 400; ++round) {
        window.signal(0, round, {});
        for (Rank peer = 0; peer < ranks; ++peer) {
          if (!wait_until(window, peer, round, deadline)) return round;
        }
      }
      return std::uint64_t{0};
    });
    EXPECT_EQ(finished, std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), 0)) << ranks;
  }
}

TEST(WindowTest, WritesBeforeASignalAreVisibleAfterIt) {
  const auto transports = make_memory_transports(2);
  const auto wrong = run_ranks(2, [&](Rank self) {
    Window& window = *transports[static_cast<std::size_t>(self)]->window();
    const Rank peer = 1 - self;
    const Deadline deadline = test_deadline();
    int bad = 0;
    for (std::uint64_t round = 1; round <= 300; ++round) {
      std::memset(window.stage(self).data(), static_cast<int>(round & 0x7f), 1000);
      window.signal(0, 2 * round - 1, {});
      if (!wait_until(window, peer, 2 * round - 1, deadline)) return -1;
      for (const std::byte b : window.stage(peer).first(1000)) {
        bad += b != static_cast<std::byte>(round & 0x7f);
      }
      window.signal(0, 2 * round, {});
      if (!wait_until(window, peer, 2 * round, deadline)) return -1;
    }
    return bad;
  });
  EXPECT_EQ(wrong, (std::vector<int>{0, 0}));
}

TEST(WindowTest, ANoticeCanBeReadUntilItIsOverwritten) {
  const auto ranks = make_memory_transports(2);
  Window& poster = *ranks[0]->window();
  const Window& reader = *ranks[1]->window();
  EXPECT_EQ(reader.posted(0), 0u);
  EXPECT_FALSE(reader.notice(0, 0));
  EXPECT_FALSE(reader.notice(0, 1));
  for (std::uint64_t sequence = 1; sequence <= 3 * Window::kNotices; ++sequence) {
    poster.post(notice_of(sequence));
    EXPECT_EQ(reader.posted(0), sequence);
    for (std::uint64_t asked = 1; asked <= sequence + 1; ++asked) {
      const auto notice = reader.notice(0, asked);
      ASSERT_EQ(notice.has_value(), asked <= sequence && asked + Window::kNotices > sequence);
      if (notice) {
        EXPECT_EQ(notice->body, notice_of(asked).body);
      }
    }
  }
  EXPECT_EQ(reader.posted(1), 0u);
}

TEST(WindowTest, NoticesReadWhileTheyAreWrittenAreWholeOrAbsent) {
  constexpr std::uint64_t kLast = 20'000;
  const auto ranks = make_memory_transports(2);
  auto posting = std::async(std::launch::async, [&] {
    for (std::uint64_t sequence = 1; sequence <= kLast; ++sequence) {
      ranks[0]->window()->post(notice_of(sequence));
    }
  });
  const Window& reader = *ranks[1]->window();
  const Deadline deadline = test_deadline();
  std::uint64_t torn = 0;
  std::uint64_t posted = 0;
  while (posted < kLast && !deadline.passed()) {
    posted = reader.posted(0);
    for (std::uint64_t back = 0; back < Window::kNotices && back < posted; ++back) {
      const auto notice = reader.notice(0, posted - back);
      torn += notice && notice->body != notice_of(posted - back).body;
    }
  }
  posting.get();
  EXPECT_EQ(posted, kLast);
  EXPECT_EQ(torn, 0u);
}

TEST(WindowTest, AnOffsetMeansTheSamePlaceToEveryRank) {
  const auto ranks = make_memory_transports(3);
  Window& owner = *ranks[1]->window();
  owner.allocate(100_B);
  std::byte* const memory = owner.allocate(1000_B);
  memory[999] = std::byte{7};
  const auto offset = owner.locate(memory, 1000_B);
  ASSERT_TRUE(offset);
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->window()->address(1, offset->offset, 1000_B)[999], std::byte{7});
  }
  EXPECT_EQ(owner.locate(memory + 10, 990_B)->offset.value, offset->offset.value + 10);
}

TEST(WindowTest, OnlyMemoryThatThisRankAllocatedIsLocated) {
  const auto ranks = make_memory_transports(2);
  Window& window = *ranks[0]->window();
  std::byte* const memory = window.allocate(128_B);
  std::byte foreign{};
  EXPECT_FALSE(window.locate(&foreign, 1_B));
  EXPECT_FALSE(window.locate(nullptr, 0_B));
  EXPECT_FALSE(window.locate(memory, 129_B));
  EXPECT_FALSE(window.locate(memory - 1, 1_B));
  EXPECT_FALSE(window.locate(ranks[1]->window()->allocate(64_B), 1_B));
  window.deallocate(memory);
  EXPECT_FALSE(window.locate(memory, 1_B));
}

TEST(WindowTest, BytesBeyondTheArenaAreAnError) {
  const auto ranks = make_memory_transports(2, {.arena = 1_MiB});
  const Window& window = *ranks[0]->window();
  EXPECT_NO_THROW(window.address(1, ArenaOffset{0}, 1_MiB));
  EXPECT_NO_THROW(window.address(1, ArenaOffset{1 << 20}, 0_B));
  EXPECT_THROW(window.address(1, ArenaOffset{1}, 1_MiB), Error);
  EXPECT_THROW(window.address(1, ArenaOffset{(1 << 20) + 1}, 0_B), Error);
  EXPECT_THROW(window.address(1, ArenaOffset{0}, 2_MiB), Error);
  EXPECT_THROW(window.address(1, ArenaOffset{UINT64_MAX - 9}, 100_B), Error);
}

TEST(WindowTest, ACopyOfAWindowKeepsItsMemoryAlive) {
  auto ranks = make_memory_transports(2);
  Window kept = *ranks[0]->window();
  std::byte* const memory = kept.allocate(64_B);
  ranks.clear();
  memory[0] = std::byte{1};
  EXPECT_TRUE(kept.locate(memory, 64_B));
  kept.deallocate(memory);
}

TEST(CommitTest, MemoryIsCommittedOnceAndBeforeItIsAllocated) {
  SingleRankWindow window(10_MiB);
  EXPECT_EQ(window.taken(), 0_B);
  window->allocate(1_KiB);
  EXPECT_GE(window.taken(), 1_KiB);
  std::byte* const large = window->allocate(3_MiB);
  window->allocate(1_KiB);
  const Bytes enough = window.taken();
  EXPECT_GE(enough, 3_MiB + 2_KiB);
  window->deallocate(large);
  window->allocate(3_MiB);
  EXPECT_EQ(window.taken(), enough);
  window->allocate(6_MiB);
  EXPECT_EQ(window.taken(), 10_MiB);  // never beyond the arena's end
}

TEST(CommitTest, AFailedCommitLeavesNothingAllocated) {
  const SingleRankWindow lone(10_MiB);
  const std::string path = "/proc/self/fd/" + std::to_string(lone.file());
  const Fd read_only(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Window window = lone.over(read_only.get());
  EXPECT_THROW(window.allocate(10_MiB), Error);
  // The failed allocation takes no place: the whole arena is still free.
  EXPECT_THAT([&] { window.allocate(10_MiB); }, ThrowsMessage<Error>(Not(HasSubstr("in use"))));
}

TEST(WindowTest, ManyThreadsMayAllocateAndLocateAtOnce) {
  const auto ranks = make_memory_transports(1);
  Window& window = *ranks[0]->window();
  const auto wrong = run_ranks(4, [&](Rank thread) {
    int bad = 0;
    for (int i = 0; i < 300; ++i) {
      const Bytes size(64 * (1 + (i * 7 + thread) % 50));
      std::byte* const memory = window.allocate(size);
      std::memset(memory, thread, static_cast<std::size_t>(size.value));
      bad += !window.locate(memory, size);
      bad += memory[size.value - 1] != static_cast<std::byte>(thread);
      window.deallocate(memory);
    }
    return bad;
  });
  EXPECT_EQ(wrong, (std::vector<int>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace peal::transport
