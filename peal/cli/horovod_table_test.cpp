#include "peal/cli/horovod_table.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/split.h"

namespace peal::cli {
namespace {

using testing::HasSubstr;

std::string refused(std::string_view option, std::string_view text) {
  try {
    accepted(*horovod_option(option), text, option);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.message());
  }
  return "";
}

TEST(HorovodTableTest, NoNameVariableOrPlaceOccursTwice) {
  std::multiset<std::string_view> names;
  std::multiset<std::string_view> others;
  for (const HorovodOption& option : horovod_options()) {
    names.insert(option.name);
    for (const std::string_view list : {option.other_names, option.opposite}) {
      for (const std::string_view name : split(list, ',')) {
        if (!name.empty()) names.insert(name);
      }
    }
    for (const std::string_view word : {option.variable, option.place}) {
      if (!word.empty()) others.insert(word);
    }
  }
  EXPECT_EQ(names.size(), std::set(names.begin(), names.end()).size());
  EXPECT_EQ(others.size(), std::set(others.begin(), others.end()).size());
}

TEST(HorovodTableTest, EachShownOptionHasAHeadingAndAMeaning) {
  for (const HorovodOption& option : horovod_options()) {
    if (option.shown == Shown::kNothing) continue;
    EXPECT_FALSE(option.heading.empty()) << option.name;
    EXPECT_FALSE(option.meaning.empty()) << option.name;
    EXPECT_EQ(option.value.empty(), option.accepts == Accepts::kSwitch) << option.name;
  }
}

TEST(HorovodTableTest, OptionsAreFoundByNameAndByPlace) {
  EXPECT_EQ(horovod_option("--tcp")->name, "--tcp");
  EXPECT_EQ(horovod_option("--speed"), nullptr);
  EXPECT_EQ(horovod_option_at("params.cycle_time_ms")->name, "--cycle-time-ms");
  EXPECT_EQ(horovod_option_at("params.speed"), nullptr);
  EXPECT_EQ(horovod_option_at(""), nullptr);
}

TEST(HorovodTableTest, ValuesAreAcceptedInOneSpelling) {
  const HorovodOption& tune = *horovod_option("--autotune");
  for (const char* const on : {"true", "True", "yes", "on", "1"}) {
    EXPECT_EQ(accepted(tune, on, ""), "1") << on;
  }
  for (const char* const off : {"false", "FALSE", "no", "off", "0"}) {
    EXPECT_EQ(accepted(tune, off, ""), "0") << off;
  }
  EXPECT_EQ(accepted(*horovod_option("--log-level"), "Warning", ""), "warning");
  EXPECT_EQ(accepted(*horovod_option("--cycle-time-ms"), "0.5", ""), "0.5");
}

TEST(HorovodTableTest, AWrongValueIsRejectedWithTheRightOnes) {
  EXPECT_EQ(refused("--cache-capacity", "0"), "");
  EXPECT_EQ(refused("--cache-capacity", "-1"),
            "--cache-capacity \"-1\": it takes a whole number, 0 or more");
  EXPECT_THAT(refused("--fusion-threshold-mb", "1.5"), HasSubstr("a whole number, 0 or more"));
  EXPECT_THAT(refused("--fusion-threshold-mb", "99999999999"), HasSubstr("a whole number"));
  EXPECT_THAT(refused("--ssh-port", "0"), HasSubstr("a whole number, 1 or more"));
  EXPECT_THAT(refused("--cycle-time-ms", "nan"), HasSubstr("a number, 0 or more"));
  EXPECT_THAT(refused("--autotune-gaussian-process-noise", "1.1"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused("--log-level", "loud"), HasSubstr("TRACE, DEBUG"));
  EXPECT_THAT(refused("--autotune", "maybe"), HasSubstr("true or false"));
  EXPECT_THAT(refused("--timeline-filename", ""), HasSubstr("not empty"));
}

TEST(HorovodTableTest, VariablesHaveHorovodsUnits) {
  EXPECT_EQ(variable_value(*horovod_option("--fusion-threshold-mb"), "32"), "33554432");
  EXPECT_EQ(variable_value(*horovod_option("--autotune"), "1"), "1");
  EXPECT_EQ(variable_value(*horovod_option("--stall-check"), "0"), "1");
  EXPECT_EQ(variable_value(*horovod_option("--log-with-timestamp"), "1"), "0");
}

}  // namespace
}  // namespace peal::cli
