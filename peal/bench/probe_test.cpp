// The probe gives the right result of every operation: a floor must do the whole operation.
#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/bench/probe_subject.h"
#include "peal/bench/values.h"
#include "peal/system/shared_file.h"

namespace peal::bench {
namespace {

/// The errors that a rank finds after two runs of each case; ranks are threads.
void run_rank(const std::string& path,
              Rank rank,
              int ranks,
              const std::vector<Case>& cases,
              const std::string& variant,
              std::barrier<>& everyone,
              std::vector<std::string>& wrong) {
  const auto subject = make_probe_subject(path, rank, ranks, Waiting::kYield);
  for (Case c : cases) {
    const auto trial = subject->prepare(c, variant);
    c.dtype = subject->checked_as(c.dtype);
    for (int run = 0; run < 2; ++run) {
      fill_input(trial->input(), c, rank);
      trial->run();
      if (const auto found = find_wrong(trial->output(), c, rank)) {
        wrong.push_back(describe(c) + ", " + variant + ": " + *found);
      }
    }
    everyone.arrive_and_wait();  // the next case uses the same memory
  }
}

std::vector<Case> cases_for(int ranks) {
  std::vector<DType> dtypes = {DType::kF32, DType::kBF16};
  if (!kSanitized) dtypes.insert(dtypes.end(), {DType::kI8, DType::kI32, DType::kI64, DType::kF64});
  std::vector<Case> cases;
  for (const Op op : kAllOps) {
    for (const DType dtype : dtypes) {
      for (const Bytes size : {4_B, 1000_B, kSanitized ? 10_KiB : 100_KiB}) {
        for (const BlockPlace place : {BlockPlace::kOut, BlockPlace::kIn}) {
          cases.push_back(make_case(op, dtype, ranks, size, place));
        }
      }
    }
  }
  return cases;
}

TEST(ProbeTest, EveryOperationIsRightWithBothKindsOfStores) {
  for (const int ranks : kSanitized ? std::vector{2, 3} : std::vector{2, 3, 4}) {
    for (const std::string variant : {"plain", "streaming"}) {
      const Fd file = make_shared_file("probe test", 1_MiB);
      const std::vector<Case> cases = cases_for(ranks);
      std::vector<std::vector<std::string>> wrong(static_cast<std::size_t>(ranks));
      std::barrier<> everyone(ranks);
      std::vector<std::thread> threads;
      for (Rank rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
          run_rank(path_of_shared_file(file),
                   rank,
                   ranks,
                   cases,
                   variant,
                   everyone,
                   wrong[static_cast<std::size_t>(rank)]);
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const auto& found : wrong) EXPECT_EQ(found, std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace peal::bench
