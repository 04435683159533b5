#include "peal/cli/horovod_config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GivenOption given(std::string_view name, std::string value, std::string place) {
  return {horovod_option(name), {std::move(value)}, std::move(place)};
}

std::string problem_of(const std::string& text) {
  try {
    parse_horovod_config(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.message());
  }
  return "";
}

TEST(HorovodConfigFileTest, EachSectionGivesItsOptions) {
  const HorovodConfig config = parse_horovod_config(R"(
controller: gloo
params:  # of the operations
    fusion_threshold_mb: 32
    cycle_time_ms: 2.5
    cache_capacity: 2048
    hierarchical_allreduce: true
    hierarchical_allgather: false
autotune:
    enabled: true
    log_file: "a b.csv"
timeline:
    filename: horovod.json
    mark_cycles: true
stall_check:
    enabled: false
    warning_time_seconds: 120
library_options:
    num_nccl_streams: 2
logging:
    level: INFO
    with_timestamp:
)");
  EXPECT_THAT(
      config.options,
      ElementsAre(
          given("--gloo", "true", "controller"),
          given("--fusion-threshold-mb", "32", "params.fusion_threshold_mb"),
          given("--cycle-time-ms", "2.5", "params.cycle_time_ms"),
          given("--cache-capacity", "2048", "params.cache_capacity"),
          given("--hierarchical-allreduce", "true", "params.hierarchical_allreduce"),
          given("--hierarchical-allgather", "false", "params.hierarchical_allgather"),
          given("--autotune", "true", "autotune.enabled"),
          given("--autotune-log-file", "a b.csv", "autotune.log_file"),
          given("--timeline-filename", "horovod.json", "timeline.filename"),
          given("--timeline-mark-cycles", "true", "timeline.mark_cycles"),
          given("--stall-check", "false", "stall_check.enabled"),
          given("--stall-check-warning-time-seconds", "120", "stall_check.warning_time_seconds"),
          given("--num-nccl-streams", "2", "library_options.num_nccl_streams"),
          given("--log-level", "INFO", "logging.level")));
  EXPECT_THAT(config.unknown, IsEmpty());
}

TEST(HorovodConfigFileTest, UnknownPlacesAreListed) {
  const HorovodConfig config =
      parse_horovod_config("params: {speed: 1, cache_capacity: 7}\nplugins: {a: [1]}\nfast: yes\n");
  EXPECT_THAT(config.options, ElementsAre(given("--cache-capacity", "7", "params.cache_capacity")));
  EXPECT_THAT(config.unknown, ElementsAre("params.speed", "plugins.a", "fast"));
}

TEST(HorovodConfigFileTest, AnEmptyFileHasNoOptions) {
  for (const char* const text : {"", "# nothing\n", "params:\ntimeline:\n"}) {
    EXPECT_EQ(parse_horovod_config(text), HorovodConfig()) << text;
  }
}

TEST(HorovodConfigFileTest, AFileThatCannotBeUnderstoodIsAnError) {
  EXPECT_THAT(problem_of("params:\n  - [\n"), HasSubstr("line 3 is not YAML"));
  EXPECT_THAT(problem_of("- params\n"), HasSubstr("no sections such as params:"));
  EXPECT_THAT(problem_of("params: {cache_capacity: [1, 2]}"),
              HasSubstr("params.cache_capacity: it takes one value"));
  EXPECT_THAT(problem_of("controller: tcp"), HasSubstr("controller: \"tcp\": it takes gloo"));
  EXPECT_THAT(problem_of("params:\n\tcache_capacity: 7\n"),
              HasSubstr("line 2 begins with a tab: indent YAML by spaces"));
  EXPECT_THAT(problem_of("params: 5\n"), HasSubstr("params: it takes names with values"));
  EXPECT_THAT(problem_of("? [a, b]\n: 1\n"), HasSubstr("a name is a word"));
  EXPECT_THAT(problem_of(std::string(100'000, '[')), HasSubstr("is not YAML"));
}

TEST(HorovodConfigFileTest, AFileIsReadAndNamedInErrors) {
  const PrivateFolder folder("peal-test.");
  const std::string path = folder.write("config.yaml", "params: {cache_capacity: 7}\n");
  EXPECT_EQ(read_horovod_config(path).options.size(), 1U);
  for (const std::string& wrong :
       {folder.write("wrong.yaml", "- 1\n"), std::string(folder.path() / "none")}) {
    try {
      read_horovod_config(wrong);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("--config-file " + wrong + ": "));
    }
  }
}

}  // namespace
}  // namespace peal::cli
