// Reports of results for people and programs: comparisons, tables, JSON lines, baselines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/base/testing/error_of.h"
#include "peal/bench/baseline.h"
#include "peal/bench/json_lines.h"
#include "peal/bench/result.h"
#include "peal/bench/table.h"

namespace peal::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

Result make_result(const std::string& backend, const std::string& variant, double median) {
  return {.the_case = make_case(Op::kAllReduce, DType::kF32, 4, 64_KiB, BlockPlace::kOut),
          .backend = backend,
          .transport = "shm",
          .variant = variant,
          .time = {.median = median,
                   .p99 = 2 * median,
                   .least = median / 2,
                   .most = median * 2,
                   .medians = {median},
                   .rounds = 5,
                   .samples = 100}};
}

/// peal, a floor and two peers.
std::vector<Result> one_case() {
  std::vector<Result> results = {make_result("peal", "registered", 4),
                                 make_result("peal", "foreign", 8),
                                 make_result("probe", "plain", 2),
                                 make_result("probe", "streaming", 3),
                                 make_result("openmpi", "default", 16)};
  compare(results, {"probe"});
  return results;
}

TEST(ResultTest, BandwidthsAreOfTheMedian) {
  const Result result = make_result("peal", "registered", 4);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(result), 16.384);
  EXPECT_DOUBLE_EQ(bus_bandwidth(result), 16.384 * 1.5);
}

TEST(ResultTest, TheFasterProbeIsTheFloorAndOnlyPeersAreCompared) {
  const std::vector<Result> results = one_case();
  EXPECT_DOUBLE_EQ(results[0].floor_fraction.value(), 0.5);
  EXPECT_DOUBLE_EQ(results[1].floor_fraction.value(), 0.25);
  EXPECT_DOUBLE_EQ(results[2].floor_fraction.value(), 1);
  EXPECT_THAT(results[0].times_faster, ElementsAre(Pair("openmpi", 4)));
  EXPECT_THAT(results[4].times_faster, IsEmpty());
}

TEST(ResultTest, ComparisonsUseTimesOfTheSameRound) {
  std::vector<Result> results = {make_result("peal", "registered", 4),
                                 make_result("probe", "plain", 1),
                                 make_result("openmpi", "default", 30)};
  results[0].time.medians = {2, 4, 4};  // in round 2 the cores shared no cache
  results[1].time.medians = {1, 1, 2};  // in round 3 the machine was slow
  results[2].time.medians = {10, 30, 40};
  compare(results, {"probe"});
  EXPECT_DOUBLE_EQ(results[0].floor_fraction.value(), 0.5);
  EXPECT_DOUBLE_EQ(results[0].times_faster.at("openmpi"), 7.5);
  EXPECT_DOUBLE_EQ(results[1].floor_fraction.value(), 1);
}

TEST(ResultTest, ResultsWithFewerRoundsAreNotCompared) {
  std::vector<Result> results = {make_result("peal", "registered", 4),
                                 make_result("openmpi", "default", 16)};
  results[1].time.medians = {16};
  results[1].time.rounds = 1;
  compare(results, {"probe"});
  EXPECT_THAT(results[0].times_faster, IsEmpty());
}

TEST(ResultTest, WithoutAFloorTheFractionIsEmpty) {
  std::vector<Result> results = {make_result("peal", "registered", 4)};
  compare(results, {"probe"});
  EXPECT_FALSE(results[0].floor_fraction.has_value());
}

TEST(TableTest, RowsHaveTheColumnsOfTheHeader) {
  const Columns columns{{"openmpi", "gloo"}};
  const std::string header = table_header(columns);
  for (const Result& result : one_case()) {
    const std::string row = table_row(result, columns);
    EXPECT_EQ(row.size(), header.size()) << row;
    EXPECT_THAT(row, HasSubstr("64 KiB"));
  }
  EXPECT_THAT(table_row(one_case()[0], columns), HasSubstr("2.00 us - 8.00 us"));
}

TEST(ReportTest, TheAlgorithmThatPealChoseIsShown) {
  Result result = make_result("peal", "registered", 4);
  result.algorithm = "recursive_doubling";
  const Columns columns;
  EXPECT_EQ(table_row(result, columns).size(), table_header(columns).size());
  EXPECT_THAT(table_row(result, columns), HasSubstr(" recursive_doubling "));
  EXPECT_EQ(nlohmann::json::parse(to_json_line(result)).at("algorithm"), "recursive_doubling");
}

TEST(TableTest, TimesHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(describe_time(0.1734), "0.17 us");
  EXPECT_EQ(describe_time(23.44), "23.4 us");
  EXPECT_EQ(describe_time(1062), "1.06 ms");
  EXPECT_EQ(describe_time(2.5e6), "2.50 s");
}

TEST(JsonTest, ALineHasAllFields) {
  const auto line = nlohmann::json::parse(to_json_line(one_case()[1]));
  EXPECT_EQ(line.at("op"), "all_reduce");
  EXPECT_EQ(line.at("backend"), "peal");
  EXPECT_EQ(line.at("transport"), "shm");
  EXPECT_EQ(line.at("dtype"), "f32");
  EXPECT_EQ(line.at("np"), 4);
  EXPECT_EQ(line.at("bytes"), 65536);
  EXPECT_EQ(line.at("registered"), false);
  EXPECT_EQ(line.at("median_us"), 8);
  EXPECT_EQ(line.at("p99_us"), 16);
  EXPECT_EQ(line.at("min_us"), 4);
  EXPECT_EQ(line.at("max_us"), 16);
  EXPECT_EQ(line.at("rounds"), 5);
  EXPECT_EQ(line.at("samples"), 100);
  EXPECT_DOUBLE_EQ(line.at("algbw_gbps"), 8.192);
  EXPECT_DOUBLE_EQ(line.at("busbw_gbps"), 12.288);
  EXPECT_DOUBLE_EQ(line.at("floor_fraction"), 0.25);
  EXPECT_TRUE(line.at("algorithm").is_null());
  EXPECT_TRUE(line.at("rate").is_null());
  EXPECT_EQ(line.at("untouched"), false);
  EXPECT_TRUE(line.at("peal_algorithm").is_null());
  EXPECT_TRUE(line.at("peal_tune").is_null());
  EXPECT_FALSE(line.contains("host_tx_bytes"));
}

TEST(JsonTest, FieldsWithoutAMeaningAreNull) {
  Result result = make_result("gloo", "default", 4);
  result.traffic = Traffic{.interface_bytes = 70000};
  const auto line = nlohmann::json::parse(to_json_line(result));
  EXPECT_TRUE(line.at("registered").is_null());
  EXPECT_TRUE(line.at("floor_fraction").is_null());
  EXPECT_EQ(line.at("host_tx_bytes"), 70000);
  EXPECT_TRUE(line.at("host_qdisc_bytes").is_null());
}

std::string lines_of(const std::vector<Result>& results) {
  std::string lines;
  for (const Result& result : results) lines += to_json_line(result);
  return lines;
}

TEST(BaselineTest, ParsedLinesEqualTheResults) {
  const auto parsed = parse_baseline(lines_of(one_case()));
  const auto reached = reached_by(one_case());
  ASSERT_EQ(parsed.size(), 2);
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    EXPECT_EQ(parsed[i].what, reached[i].what);
    EXPECT_EQ(parsed[i].ratios, reached[i].ratios);
  }
}

TEST(BaselineTest, InPlaceIsAnotherCase) {
  Result out = make_result("peal", "registered", 4);
  out.the_case = make_case(Op::kAllGather, DType::kF32, 4, 64_KiB, BlockPlace::kOut);
  Result in = out;
  in.the_case.place = BlockPlace::kIn;
  out.floor_fraction = 0.5;
  in.floor_fraction = 0.9;
  const auto before = parse_baseline(lines_of({out, in}));
  const Comparison same = compare_with(before, reached_by({in, out}), 1);
  EXPECT_EQ(same.compared, 2);
  EXPECT_THAT(same.worse, IsEmpty());
  in.floor_fraction = 0.6;
  const Comparison less = compare_with(before, reached_by({in, out}), 1);
  ASSERT_EQ(less.worse.size(), 1);
  EXPECT_THAT(less.worse[0].what, HasSubstr("65536 B in place registered"));
}

TEST(BaselineTest, TheRequestedPlaceDoesNotMatterForOperationsWithOnePlace) {
  for (const Op op : {Op::kAllReduce, Op::kBroadcast, Op::kReduce, Op::kAllToAll, Op::kSendRecv}) {
    Result out = make_result("peal", "registered", 4);
    out.the_case = make_case(op, DType::kF32, 4, 64_KiB, BlockPlace::kOut);
    Result in = out;
    in.the_case.place = BlockPlace::kIn;
    EXPECT_EQ(reached_by({out})[0].what, reached_by({in})[0].what);
    EXPECT_EQ(to_json_line(out), to_json_line(in));
    EXPECT_EQ(parse_baseline(to_json_line(out))[0].what, reached_by({in})[0].what);
  }
}

TEST(BaselineTest, ARunUnderOtherConditionsIsAnotherCase) {
  Result plain = make_result("peal", "registered", 4);
  plain.floor_fraction = 0.5;
  std::vector<Result> all(7, plain);
  all[1].conditions.rate = "1gbit";
  all[2].conditions.rewriting = Rewriting::kNone;
  all[3].conditions.algorithm = "ring";
  all[4].conditions.tune = "all_reduce:0-4k:ring";
  all[5].conditions.congestion = "reno";
  all[6].conditions.stage = "1 MiB";
  for (const Result& before : all) {
    for (const Result& now : all) {
      const Comparison comparison =
          compare_with(parse_baseline(lines_of({before})), reached_by({now}), 1);
      EXPECT_EQ(comparison.compared, &before == &now ? 1 : 0) << lines_of({before, now});
    }
  }
}

TEST(BaselineTest, LinesWithoutConditionsAreOfARunWithoutConditions) {
  Result plain = make_result("peal", "registered", 4);
  plain.floor_fraction = 0.5;
  auto line = nlohmann::json::parse(to_json_line(plain));
  for (const char* field :
       {"rate", "congestion", "untouched", "peal_algorithm", "peal_tune", "peal_stage"}) {
    ASSERT_EQ(line.erase(field), 1);
  }
  EXPECT_EQ(compare_with(parse_baseline(line.dump()), reached_by({plain}), 1).compared, 1);
}

TEST(BaselineTest, OnlyRatiosBelowTheToleranceAreWorse) {
  const std::vector<Reached> before = {{"a", {{"floor", 0.8}, {"openmpi", 10}, {"gloo", 5}}}};
  const std::vector<Reached> now = {{"a", {{"floor", 0.41}, {"openmpi", 4}}},
                                    {"b", {{"floor", 0}}}};
  const Comparison comparison = compare_with(before, now, 0.5);
  EXPECT_EQ(comparison.compared, 2);
  ASSERT_EQ(comparison.worse.size(), 1);
  EXPECT_EQ(comparison.worse[0].ratio, "openmpi");
  EXPECT_THAT(describe(comparison.worse), HasSubstr("x openmpi was    10.00, is     4.00"));
}

TEST(BaselineTest, RunsWithoutACommonCaseAreAnError) {
  const std::vector<Reached> before = {{"a", {{"floor", 0.8}}}, {"b", {}}};
  EXPECT_NO_THROW(check_common_case(before, {{"c", {}}, {"b", {}}}));
  const Error error = error_of([&] { check_common_case(before, {{"c", {}}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("the baseline has \"a\" and 1 more, this run has \"c\""));
  EXPECT_THAT(error_of([] {
                check_common_case({}, {{"c", {}}});
              }).what(),
              HasSubstr("the baseline has none of peal"));
}

TEST(BaselineTest, AnInvalidFileIsAnErrorThatNamesTheLine) {
  const Error error = error_of([] { parse_baseline("{\"backend\": \"gloo\"}\n\n{\"op\": 3}\n"); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("line 3 of the baseline"));
}

}  // namespace
}  // namespace peal::bench
