#include "peal/bench/calibrate.h"

#include <gtest/gtest.h>

namespace peal::bench {
namespace {

using std::chrono::seconds;

constexpr double kRound = 0.1;  // seconds

Case all_reduce(Bytes size) {
  return make_case(Op::kAllReduce, DType::kF32, 2, size, BlockPlace::kOut);
}

/// A machine on which an operation takes `operation` seconds; one trial is slower by a hiccup.
struct Machine {
  double operation = 1e-6;  // seconds
  int hiccup_in = 0;        // the trial with the hiccup: 1 is the first; 0: no trial
  double hiccup = 0;
  int tries = 0;
  int repeated = 0;  // operations in all

  Tried operator()(const Timing& timing) {
    const double late = ++tries == hiccup_in ? hiccup : 0;
    const int rounds = timing.warmup + timing.iterations;
    repeated += rounds * timing.batch;
    const double all = operation * timing.batch;
    return {.seconds = rounds * all + late,
            .median = 1e6 * (timing.iterations == 1 ? all + late : all) / timing.batch};
  }
};

Timing calibrated(const Case& c, Machine& machine) {
  return calibrate(c, {.slot = 3}, kRound, [&](const Timing& timing) { return machine(timing); })
      .value();
}

TEST(CalibrateTest, AShortOperationFillsARoundInBatches) {
  Machine machine{.operation = 1e-6};
  const Timing timing = calibrated(all_reduce(256_B), machine);
  EXPECT_EQ(timing.slot, 3);
  EXPECT_EQ(timing.batch, 35);
  EXPECT_NEAR(timing.iterations, kRound / 35e-6, 10);
  EXPECT_EQ(timing.warmup, 20);
}

TEST(CalibrateTest, LargeOperationsAreTimedOneByOne) {
  Machine machine{.operation = 100e-6};
  const Timing timing = calibrated(all_reduce(1_MiB), machine);
  EXPECT_EQ(timing.batch, 1);
  EXPECT_NEAR(timing.iterations, 1000, 1);
}

TEST(CalibrateTest, AHiccupInTheFirstTrialDoesNotChangeTheResult) {
  for (const Bytes size : {4_B, 1_MiB}) {
    for (const double hiccup : {0.05, 0.5, 5.0}) {
      Machine calm{.operation = 10e-6};
      Machine late{.operation = 10e-6, .hiccup_in = 1, .hiccup = hiccup};
      const Timing expected = calibrated(all_reduce(size), calm);
      const Timing timing = calibrated(all_reduce(size), late);
      EXPECT_EQ(timing.batch, expected.batch) << hiccup;
      EXPECT_NEAR(timing.iterations, expected.iterations, 1 + expected.iterations / 100) << hiccup;
    }
  }
}

TEST(CalibrateTest, AnOperationLongerThanARoundHasTwoTrialsAndTheFewestIterations) {
  Machine machine{.operation = 3};
  const Timing timing = calibrated(all_reduce(64_MiB), machine);
  EXPECT_EQ(machine.repeated, 2);
  EXPECT_EQ(timing.iterations, 2);
  EXPECT_EQ(timing.warmup, 1);
}

TEST(CalibrateTest, TheNumberOfIterationsIsLimitedForAVeryLongRound) {
  Machine machine{.operation = 1e-9};
  const Timing timing =
      calibrate(all_reduce(1_MiB), {}, 1e9, [&](const Timing& t) { return machine(t); }).value();
  EXPECT_EQ(timing.iterations, 20'000);
}

TEST(CalibrateTest, AFailedTrialEndsTheCalibration) {
  for (const int failing : {1, 2, 3}) {
    Machine machine;
    const auto attempt = [&](const Timing& timing) -> std::optional<Tried> {
      const Tried tried = machine(timing);
      if (machine.tries == failing) return std::nullopt;
      return tried;
    };
    EXPECT_FALSE(calibrate(all_reduce(4_B), {}, kRound, attempt));
    EXPECT_EQ(machine.tries, failing);
  }
}

TEST(CalibrateTest, TheTimeoutIsLongerThanTheExpectedTime) {
  EXPECT_GE(time_limit_for(0.1), seconds(120));
  for (const int round : {1, 100, 130, 3600}) {
    EXPECT_GE(time_limit_for(round), seconds(120 + 2 * round));
  }
}

}  // namespace
}  // namespace peal::bench
