#include "peal/cli/horovod_settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/launch/cores.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using launch::Assignment;
using launch::HostSlots;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GivenOption given(std::string_view name, std::vector<std::string> values = {"true"}) {
  return {horovod_option(name), std::move(values)};
}

/// A config file with a cache of 7 names, a switch that is on, and a place that is not known.
HorovodConfig a_config(const std::string& path) {
  return {{given("--cache-capacity", {"7"}), given("--autotune")}, {"params." + path}};
}

HorovodSettings settings_of(const std::vector<GivenOption>& options) {
  return settle(options, a_config);
}

std::vector<std::string> notices(const std::vector<GivenOption>& options) {
  return notices_of(settings_of(options), {});
}

const Environment kNoVariables = fixed_environment({});

TEST(HorovodSettingsTest, OptionsBecomeVariablesOfTheRanks) {
  const HorovodSettings settings = settings_of({given("--timeline-filename", {"t.json"}),
                                                given("--fusion-threshold-mb", {"2"}),
                                                given("--stall-check", {"false"}),
                                                given("--hierarchical-allreduce", {"false"}),
                                                given("--verbose"),
                                                given("--log-level", {"INFO"})});
  EXPECT_THAT(variables_of(settings),
              ElementsAre(Assignment{"HOROVOD_FUSION_THRESHOLD", "2097152"},
                          Assignment{"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"},
                          Assignment{"HOROVOD_TIMELINE", "t.json"},
                          Assignment{"HOROVOD_STALL_CHECK_DISABLE", "1"},
                          Assignment{"HOROVOD_LOG_LEVEL", "info"}));
  EXPECT_THAT(variables_of(settings_of({})), IsEmpty());
}

TEST(HorovodSettingsTest, TheLastOfEqualOptionsCounts) {
  const HorovodSettings settings = settings_of({given("--cache-capacity", {"1"}),
                                                given("--autotune"),
                                                given("--cache-capacity", {"2"}),
                                                given("--autotune", {"false"})});
  EXPECT_EQ(settings.number("--cache-capacity"), 2);
  EXPECT_FALSE(settings.is_on("--autotune"));
}

TEST(HorovodSettingsTest, AConfigFileOverridesEarlierOptionsAndLaterOptionsOverrideIt) {
  const GivenOption cache = given("--cache-capacity", {"1"});
  const GivenOption file = given("--config-file", {"speed"});
  EXPECT_EQ(settings_of({cache, file}).number("--cache-capacity"), 7);
  EXPECT_EQ(settings_of({file, cache}).number("--cache-capacity"), 1);
  EXPECT_TRUE(settings_of({given("--autotune", {"false"}), file}).is_on("--autotune"));
  EXPECT_THAT(notices({file}),
              ElementsAre("--config-file speed: params.speed is not known and has no effect"));
}

TEST(HorovodSettingsTest, AWrongValueInAConfigFileIsNamedByItsPlace) {
  GivenOption wrong = given("--cache-capacity", {"many"});
  wrong.source = "params.cache_capacity";
  EXPECT_THAT(usage_error_of([&] { settings_of({wrong}); }),
              HasSubstr("params.cache_capacity \"many\": it takes"));
}

TEST(HorovodSettingsTest, NetworkInterfacesAddUpAndAreForPealToo) {
  const HorovodSettings settings = settings_of(
      {given("--network-interfaces", {"eth0"}), given("--network-interfaces", {"eth1,eth2"})});
  EXPECT_THAT(variables_of(settings),
              ElementsAre(Assignment{"HOROVOD_GLOO_IFACE", "eth0,eth1,eth2"},
                          Assignment{"PEAL_INTERFACE", "eth0,eth1,eth2"}));
}

TEST(HorovodSettingsTest, OptionsWithoutEffectAreNamedWithTheReason) {
  EXPECT_THAT(notices({given("--tcp"), given("--reset-limit", {"3"})}),
              ElementsAre("--tcp has no effect: peal always uses shared memory and TCP",
                          "--reset-limit has no effect without --host-discovery-script or "
                          "--min-np"));
  EXPECT_THAT(notices({given("--reset-limit", {"3"}), given("--min-np", {"1"})}), IsEmpty());
}

TEST(HorovodSettingsTest, VerboseNamesTheRanksOfEachHost) {
  launch::LaunchOptions options;
  options.ranks = 3;
  options.hosts = {{"a", 2}, {"b", 2}};
  EXPECT_THAT(notices_of(settings_of({given("--verbose")}), options),
              ElementsAre("host a has ranks 0 to 1", "host b has rank 2"));
}

TEST(HorovodSettingsTest, VerboseTellsThatRanksOfThisMachineShareCores) {
  const auto cores = static_cast<int>(launch::usable_cores().size());
  launch::LaunchOptions options;
  options.ranks = cores;
  const HorovodSettings settings = settings_of({given("--verbose")});
  EXPECT_THAT(notices_of(settings, options), SizeIs(1)) << "only the host and its ranks";
  options.ranks = cores + 1;
  EXPECT_THAT(notices_of(settings, options),
              Contains(HasSubstr(fmt::format("{} ranks share {} core", cores + 1, cores))));
}

TEST(HorovodSettingsTest, OutputsAreSetAndTwoFoldersOfLogsAreRejected) {
  const HorovodSettings settings =
      settings_of({given("--output-filename", {"logs"}), given("--prefix-timestamp")});
  launch::LaunchOptions options;
  set_output(settings, options);
  EXPECT_EQ(options.log_directory, "logs");
  EXPECT_EQ(options.log_names, launch::LogNames::kFolders);
  EXPECT_EQ(options.timestamps, launch::Timestamps::kOn);
  EXPECT_THAT(usage_error_of([&] { set_output(settings, options); }),
              HasSubstr("give only one of them"));
}

TEST(HorovodSettingsTest, HostsComeFromOneListOnly) {
  const PrivateFolder folder("peal-test.");
  const std::string file = folder.write("hosts", "a slots=2\n# b\nc\n");
  EXPECT_THAT(hosts_of(settings_of({})), IsEmpty());
  EXPECT_THAT(hosts_of(settings_of({given("--hosts", {"a:2"})})), ElementsAre(HostSlots{"a", 2}));
  EXPECT_THAT(hosts_of(settings_of({given("--hostfile", {file})})),
              ElementsAre(HostSlots{"a", 2}, HostSlots{"c", 1}));
  EXPECT_THAT(usage_error_of([&] {
                hosts_of(settings_of({given("--hostfile", {file}), given("--hosts", {"a:2"})}));
              }),
              HasSubstr("--hosts and --hostfile both name the hosts"));
  EXPECT_THAT(usage_error_of([] { hosts_of(settings_of({given("--hostfile", {"/no/such"})})); }),
              HasSubstr("--hostfile /no/such: cannot be read"));
  const std::string wrong = folder.write("wrong", "a:0\n");
  EXPECT_THAT(usage_error_of([&] { hosts_of(settings_of({given("--hostfile", {wrong})})); }),
              HasSubstr("--hostfile " + wrong + ": line 1, \"a:0\""));
}

TEST(HorovodSettingsTest, AJobIsElasticWithAScriptOrASmallestNumberOfRanks) {
  EXPECT_EQ(elastic_of(settings_of({given("--max-np", {"4"})}), 2, kNoVariables), std::nullopt);
  launch::ElasticOptions expected;
  expected.min_ranks = 1;
  EXPECT_EQ(elastic_of(settings_of({given("--min-np", {"1"})}), 2, kNoVariables), expected);
  expected.min_ranks = 2;
  expected.discovery_script = "./find";
  EXPECT_EQ(
      elastic_of(settings_of({given("--host-discovery-script", {"./find"})}), 2, kNoVariables),
      expected);
}

TEST(HorovodSettingsTest, AllElasticOptionsAreTaken) {
  const HorovodSettings settings = settings_of({given("--host-discovery-script", {"./find"}),
                                                given("--min-np", {"2"}),
                                                given("--max-np", {"8"}),
                                                given("--slots-per-host", {"4"}),
                                                given("--elastic-timeout", {"30"}),
                                                given("--reset-limit", {"0"}),
                                                given("--blacklist-cooldown-range", {"5", "60"})});
  const launch::ElasticOptions expected = {
      .min_ranks = 2,
      .max_ranks = 8,
      .discovery_script = "./find",
      .slots = 4,
      .timeout = std::chrono::seconds(30),
      .reset_limit = 0,
      .cooldown = launch::Cooldown{std::chrono::seconds(5), std::chrono::seconds(60)},
  };
  EXPECT_EQ(elastic_of(settings, 4, kNoVariables), expected);
}

TEST(HorovodSettingsTest, TheElasticTimeoutMayComeFromTheEnvironment) {
  const Environment environment = fixed_environment({{"HOROVOD_ELASTIC_TIMEOUT", "7"}});
  const GivenOption min = given("--min-np", {"1"});
  EXPECT_EQ(elastic_of(settings_of({min}), 2, environment)->timeout, std::chrono::seconds(7));
  EXPECT_EQ(
      elastic_of(settings_of({min, given("--elastic-timeout", {"9"})}), 2, environment)->timeout,
      std::chrono::seconds(9));
}

TEST(HorovodSettingsTest, ElasticOptionsThatContradictEachOtherAreRejected) {
  const auto refused = [](const std::vector<GivenOption>& options) {
    return usage_error_of([&] { elastic_of(settings_of(options), 4, kNoVariables); });
  };
  EXPECT_THAT(refused({given("--min-np", {"5"})}),
              HasSubstr("--min-np 5 is more than -n 4: give a smaller --min-np or a larger -n"));
  EXPECT_THAT(refused({given("--min-np", {"2"}), given("--max-np", {"3"})}),
              HasSubstr("-n 4 is more than --max-np 3"));
  EXPECT_THAT(refused({given("--min-np", {"1"}), given("--blacklist-cooldown-range", {"9", "3"})}),
              HasSubstr("--blacklist-cooldown-range 9 3"));
}

TEST(HorovodSettingsTest, OtherControllersAreRejectedWithTheWayOut) {
  check_controller(settings_of({given("--gloo")}));
  EXPECT_THAT(
      usage_error_of([] { check_controller(settings_of({given("--mpi")})); }),
      HasSubstr("leave out --mpi (in a config file: controller), or give --launcher mpi, or "
                "start the ranks with mpirun -np 2 ./train"));
  EXPECT_THAT(usage_error_of([] { check_controller(settings_of({given("--jsrun")})); }),
              HasSubstr("jsrun"));
}

}  // namespace
}  // namespace peal::cli
