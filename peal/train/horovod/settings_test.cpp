#include "peal/train/horovod/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Settings read(std::map<std::string, std::string> variables) {
  return read_settings(fixed_environment(std::move(variables)));
}

std::string error_of(std::map<std::string, std::string> variables) {
  try {
    read(std::move(variables));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Settings, HaveTheDefaultsOfHorovod) {
  const Settings settings = read({});
  EXPECT_EQ(settings, Settings());
  EXPECT_EQ(settings.fusion_threshold, Bytes(134217728));
  EXPECT_EQ(settings.stall_warning, std::chrono::seconds(60));
}

TEST(Settings, TakeTheValuesOfTheVariables) {
  const Settings settings = read({{"HOROVOD_FUSION_THRESHOLD", "0"},
                                  {"HOROVOD_CACHE_CAPACITY", "7"},
                                  {"HOROVOD_DISABLE_GROUP_FUSION", "1"},
                                  {"HOROVOD_DYNAMIC_PROCESS_SETS", "1"},
                                  {"HOROVOD_TIMELINE", "DYNAMIC"},
                                  {"HOROVOD_STALL_CHECK_TIME_SECONDS", "0.5"},
                                  {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "9"},
                                  {"HOROVOD_LOG_LEVEL", "fatal"},
                                  {"HOROVOD_RANK", "1"},
                                  {"HOROVOD_SIZE", "2"},
                                  {"HOROVOD_HOSTNAME", "a"}});
  EXPECT_EQ(settings.fusion_threshold, 0_B);
  EXPECT_EQ(settings.cache_capacity, 7);
  EXPECT_EQ(settings.group_fusion, Switch::kOff);
  EXPECT_EQ(settings.dynamic_process_sets, Switch::kOn);
  EXPECT_EQ(settings.timeline, "DYNAMIC");
  EXPECT_EQ(settings.stall_warning, std::chrono::milliseconds(500));
  EXPECT_EQ(settings.stall_shutdown, std::chrono::seconds(9));
  EXPECT_EQ(settings.reports, Switch::kOff);
  EXPECT_EQ(settings.rank, 1);
  EXPECT_EQ(settings.size, 2);
  EXPECT_EQ(settings.host, "a");
}

TEST(Settings, WithoutAStallCheckHaveNoWarningTime) {
  const Settings settings =
      read({{"HOROVOD_STALL_CHECK_DISABLE", "1"}, {"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"}});
  EXPECT_EQ(settings.stall_warning, Timeout(0));
}

TEST(Settings, RejectAWrongValueAndNameTheVariable) {
  EXPECT_THAT(error_of({{"HOROVOD_FUSION_THRESHOLD", "64MB"}}),
              HasSubstr("HOROVOD_FUSION_THRESHOLD=\"64MB\": it takes bytes from 0 on"));
  EXPECT_THAT(error_of({{"HOROVOD_RANK", "2"}, {"HOROVOD_SIZE", "2"}}),
              HasSubstr("HOROVOD_RANK=2 is not less than HOROVOD_SIZE=2"));
  EXPECT_THAT(error_of({{"HOROVOD_RANK", "2"}}), HasSubstr("HOROVOD_SIZE"));
}

TEST(Settings, HaveARemarkForVariablesWithoutAnEffectAndForUnknownOnes) {
  EXPECT_THAT(remarks_on({"HOROVOD_RANK", "PATH", "HOROVOD_ELASTIC_TIMEOUT"}), IsEmpty());
  EXPECT_THAT(remarks_on({"HOROVOD_CYCLE_TIME", "HOROVOD_CYCEL_TIME", "HOROVOD_CCL_CACHE"}),
              ElementsAre("these variables have no effect on peal: HOROVOD_CYCLE_TIME, "
                          "HOROVOD_CCL_CACHE",
                          "these variables are unknown, check their names: HOROVOD_CYCEL_TIME"));
}

TEST(Settings, HaveEachVariableOnce) {
  std::vector<std::string> names;
  for (const Variable& variable : variables()) names.emplace_back(variable.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace peal::hvd
