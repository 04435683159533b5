// The bare stream. Hosts are threads with addresses of the loopback interface.
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/bench/stream_subject.h"

namespace peal::bench {
namespace {

/// Addresses of this process only, so that other tests may run at the same time.
std::string addresses_of(int hosts) {
  std::string all;
  for (int host = 1; host <= hosts; ++host) {
    const auto process = static_cast<unsigned>(::getpid());
    all += fmt::format(
        "{}127.{}.{}.{}", host == 1 ? "" : ",", process >> 8U & 255U, process & 255U, host);
  }
  return all;
}

/// Calls body(host, stream, all) on a thread for each host. A host closes its connections when its
/// body has returned.
template <class Body>
void on_hosts(int hosts, Waiting waiting, const Body& body, Timeout timeout = kStreamTimeout) {
  std::barrier<> all(hosts);
  std::vector<std::thread> threads;
  for (Rank host = 0; host < hosts; ++host) {
    threads.emplace_back([&, host] {
      body(host, *make_stream_subject(addresses_of(hosts), host, waiting, timeout), all);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Case all_reduce(int ranks, Bytes size) {
  return make_case(Op::kAllReduce, DType::kF32, ranks, size, BlockPlace::kOut);
}

/// The kind of the error that the trial throws.
std::optional<ErrorKind> error_of(Trial& trial) {
  try {
    trial.run();
  } catch (const Error& error) {
    return error.kind();
  }
  return std::nullopt;
}

std::ptrdiff_t threads_here() {
  using Folder = std::filesystem::directory_iterator;
  return std::distance(Folder("/proc/self/task"), Folder());
}

/// The resident memory of this process. Source: proc(5), statm: the second number, in pages.
Bytes memory_here() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return Bytes(resident * ::sysconf(_SC_PAGESIZE));
}

TEST(StreamTest, EveryVariantEndsAtEverySizeThatItSupports) {
  for (const int hosts : {2, 3}) {
    for (const Waiting waiting : {Waiting::kSpin, Waiting::kYield}) {
      on_hosts(hosts, waiting, [&](Rank, Subject& stream, std::barrier<>& all) {
        for (const Bytes size : {4_B, 256_B, 260_B, 64_KiB, 3_MiB, 16_MiB}) {
          for (const char* variant : {"two-way", "two-threads", "round-trip"}) {
            const Case c = all_reduce(hosts, size);
            if (!stream.can(c, variant)) continue;
            const auto trial = stream.prepare(c, variant);
            for (int i = 0; i < 3; ++i) trial->run();
            all.arrive_and_wait();
          }
        }
      });
    }
  }
}

TEST(StreamTest, ASizeHasTheVariantsThatSupportIt) {
  on_hosts(2, Waiting::kYield, [](Rank host, Subject& stream, std::barrier<>&) {
    const auto can = [&](Bytes size, const char* variant) {
      return stream.can(all_reduce(2, size), variant);
    };
    if (host != 0) return;
    EXPECT_TRUE(can(256_B, "round-trip"));
    EXPECT_FALSE(can(256_B, "two-way"));
    EXPECT_FALSE(can(260_B, "round-trip"));
    EXPECT_TRUE(can(260_B, "two-way"));
    EXPECT_FALSE(can(1_MiB, "two-threads"));
    EXPECT_TRUE(can(16_MiB, "two-way"));
    EXPECT_TRUE(can(16_MiB, "two-threads"));
  });
}

TEST(StreamTest, OnlyTheVariantWithTwoThreadsStartsAThread) {
  on_hosts(2, Waiting::kYield, [](Rank, Subject& stream, std::barrier<>& all) {
    all.arrive_and_wait();
    const auto before = threads_here();
    all.arrive_and_wait();
    for (const char* variant : {"two-way", "two-threads"}) {
      const auto trial = stream.prepare(all_reduce(2, 16_MiB), variant);
      all.arrive_and_wait();
      EXPECT_EQ(threads_here() - before, variant == std::string("two-way") ? 0 : 2);
      trial->run();
      all.arrive_and_wait();
    }
  });
}

/// `holders_of` (bench.cpp) counts the bytes that each host sends and receives once.
TEST(StreamTest, BothVariantsOfACaseShareTheirMemory) {
  Bytes first, second;
  on_hosts(2, Waiting::kYield, [&](Rank host, Subject& stream, std::barrier<>& all) {
    const Case c = all_reduce(2, 64_MiB);
    all.arrive_and_wait();
    if (host == 0) {
      const Bytes before = memory_here();
      const auto two_way = stream.prepare(c, "two-way");
      first = memory_here() - before;
      const auto two_threads = stream.prepare(c, "two-threads");
      second = memory_here() - before - first;
    }
    all.arrive_and_wait();
  });
  EXPECT_GE(first, 120_MiB);
  EXPECT_LT(second, 20_MiB);
}

/// Host 0 has sent and received a part of its data when host 2, its sender, closes its connections.
/// Host 1 has received all its data by then.
TEST(StreamTest, AHostThatClosesInTheMiddleEndsTheTrialOfAnother) {
  for (const char* variant : {"two-way", "two-threads"}) {
    std::optional<ErrorKind> error;
    Duration ending{};
    std::barrier<> others(2);
    on_hosts(3, Waiting::kYield, [&](Rank host, Subject& stream, std::barrier<>& all) {
      if (host == 0) {
        auto trial = stream.prepare(all_reduce(3, 48_MiB), variant);
        error = error_of(*trial);
        const TimePoint begin = Clock::now();
        trial.reset();
        ending = Clock::now() - begin;
      } else {
        stream.prepare(all_reduce(3, 3_MiB), "two-way")->run();
        others.arrive_and_wait();
      }
      if (host == 2) return all.arrive_and_drop();
      all.arrive_and_wait();
    });
    EXPECT_EQ(error, ErrorKind::kPeerLost) << variant;
    EXPECT_LT(ending, kStreamTimeout / 2) << variant;
  }
}

TEST(StreamTest, EveryTrialFailsAfterTheOnlyPeerHasEnded) {
  for (const char* variant : {"two-way", "two-threads"}) {
    std::vector<std::optional<ErrorKind>> errors;
    on_hosts(2, Waiting::kYield, [&](Rank host, Subject& stream, std::barrier<>&) {
      if (host == 1) return stream.prepare(all_reduce(2, 3_MiB), "two-way")->run();
      const auto trial = stream.prepare(all_reduce(2, 48_MiB), variant);
      for (int i = 0; i < 3; ++i) errors.push_back(error_of(*trial));
    });
    for (const auto& error : errors) EXPECT_EQ(error, ErrorKind::kPeerLost) << variant;
  }
}

TEST(StreamTest, ATrialTimesOutIfAHostMakesNoProgress) {
  for (const char* variant : {"two-way", "two-threads"}) {
    std::optional<ErrorKind> error;
    on_hosts(
        2,
        Waiting::kYield,
        [&](Rank host, Subject& stream, std::barrier<>& all) {
          if (host == 0) error = error_of(*stream.prepare(all_reduce(2, 48_MiB), variant));
          all.arrive_and_wait();
        },
        Timeout(100));
    EXPECT_EQ(error, ErrorKind::kTimeout) << variant;
  }
}

}  // namespace
}  // namespace peal::bench
