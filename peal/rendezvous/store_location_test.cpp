#include "peal/rendezvous/store_location.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::rendezvous {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

constexpr Process kProcess{1000, 4711};

StoreLocation place_of(const Variables& variables, const MeetRequest& request = {}) {
  const Environment environment = fixed_environment(variables);
  const Url url = parse_url(request.url);
  return choose_place(
      url, read_launcher_environment(request, url, environment), environment, kProcess);
}

std::string place_refusal(const Variables& variables, const MeetRequest& request = {}) {
  try {
    place_of(variables, request);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

Variables with(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Variables kTwoRanks = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
const Variables kMaster = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};

/// Two ranks on this machine, as torchrun starts them.
const Variables kTorchrun = {{"RANK", "0"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "0"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "run"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "0"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "99"}};

const Variables kMpich = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};

const Variables kSlurm = {{"SLURM_PROCID", "0"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NODEID", "0"},
                          {"SLURM_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_JOB_ID", "12345"},
                          {"SLURM_STEP_ID", "1"},
                          {"SLURM_JOB_NODELIST", "node[003-004]"}};

TEST(StoreLocationTest, OneRankMeetsNowhere) {
  EXPECT_EQ(place_of({}), StoreLocation(NoStore{}));
  EXPECT_EQ(place_of(with(kMaster, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
            StoreLocation(NoStore{}));
  EXPECT_EQ(place_of({}, {.url = "tcp://h:1?rank=0&world_size=1", .rank = {}, .world_size = {}}),
            StoreLocation(NoStore{}));
}

TEST(StoreLocationTest, AUrlWithAPlaceOverridesTheEnvironment) {
  EXPECT_EQ(
      place_of(with(kTwoRanks, kMaster), {.url = "tcp://[::1]:7", .rank = {}, .world_size = {}}),
      StoreLocation(StoreAtPort{"::1", 7}));
  EXPECT_EQ(place_of(kTorchrun, {.url = "file:///f", .rank = {}, .world_size = {}}),
            StoreLocation(StoreInFile{"/f"}));
}

TEST(StoreLocationTest, TheEnvironmentNamesTheMaster) {
  EXPECT_EQ(place_of(with(kTwoRanks, kMaster)), StoreLocation(StoreAtPort{"node1", 29500}));
  EXPECT_EQ(place_of(with(kOpenMpi, kMaster)), StoreLocation(StoreAtPort{"node1", 29500}));
  EXPECT_EQ(place_of(with(kSlurm, kMaster)), StoreLocation(StoreAtPort{"node1", 29500}));
  EXPECT_EQ(place_of(with(with(kTwoRanks, kMaster), {{"PEAL_MASTER_PORT", "29600"}})),
            StoreLocation(StoreAtPort{"node1", 29600}));
}

TEST(StoreLocationTest, VariablesOfALauncherOfNodesNameTheMasterIfNothingElseDoes) {
  const Variables skypilot = {{"SKYPILOT_NUM_NODES", "2"},
                              {"SKYPILOT_NODE_RANK", "1"},
                              {"SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2"}};
  const Variables cluster = {{"TF_CONFIG", R"({"cluster": {"chief": ["m:2222"]}})"}};
  EXPECT_EQ(place_of(skypilot), StoreLocation(StoreAtPort{"10.0.0.1", 29500}));
  EXPECT_EQ(place_of(with(skypilot, {{"MASTER_PORT", "5"}})),
            StoreLocation(StoreAtPort{"10.0.0.1", 5}));
  EXPECT_EQ(place_of(with(skypilot, kMaster)), StoreLocation(StoreAtPort{"node1", 29500}));
  EXPECT_EQ(place_of(with(kTwoRanks, cluster)), StoreLocation(StoreAtPort{"m", 2222}));
}

TEST(StoreLocationTest, TheErrorNamesMissingVariables) {
  EXPECT_THAT(place_refusal(kTwoRanks), HasSubstr("MASTER_ADDR and MASTER_PORT are not set"));
  EXPECT_THAT(place_refusal(with(kTwoRanks, {{"MASTER_ADDR", "h"}})),
              HasSubstr("MASTER_PORT is not set (MASTER_ADDR is)"));
  EXPECT_THAT(place_refusal(with(kTwoRanks, {{"MASTER_PORT", "1"}})),
              HasSubstr("MASTER_ADDR is not set (MASTER_PORT is)"));
  EXPECT_THAT(place_refusal(with(kTwoRanks, {{"MASTER_ADDR", ""}, {"MASTER_PORT", "1"}})),
              HasSubstr("MASTER_ADDR is empty"));
  EXPECT_THAT(place_refusal(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})),
              HasSubstr("MASTER_ADDR"));
}

TEST(StoreLocationTest, TheErrorNamesAWrongPortAndItsValue) {
  for (const char* port : {"", "0", "65536", "http"}) {
    EXPECT_THAT(place_refusal(with(kTwoRanks, {{"MASTER_ADDR", "h"}, {"MASTER_PORT", port}})),
                HasSubstr("MASTER_PORT=\"" + std::string(port) + "\""));
    EXPECT_THAT(place_refusal(with(with(kTwoRanks, kMaster), {{"PEAL_MASTER_PORT", port}})),
                HasSubstr("PEAL_MASTER_PORT"));
  }
}

TEST(StoreLocationTest, UnderTorchrunPealAvoidsThePortOfTorchrunsStore) {
  EXPECT_EQ(place_of(kTorchrun), StoreLocation(StoreAtSocket{"peal.1000.run.29500.0"}));
  const Variables many = with(kTorchrun, {{"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(place_of(many), StoreLocation(StoreAtPort{"node1", 29501}));
  EXPECT_EQ(place_of(with(many, {{"MASTER_PORT", "65535"}})),
            StoreLocation(StoreAtPort{"node1", 65534}));
  for (const Variables& variables : {many, kTorchrun}) {
    EXPECT_EQ(place_of(with(variables, {{"PEAL_MASTER_PORT", "7"}})),
              StoreLocation(StoreAtPort{"node1", 7}));
    EXPECT_EQ(place_of(with(variables, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})),
              StoreLocation(StoreAtPort{"node1", 29500}));
  }
}

TEST(StoreLocationTest, RanksOfMpiOnOneMachineNeedNoFurtherVariables) {
  EXPECT_EQ(place_of(kOpenMpi), StoreLocation(StoreAtSocket{"peal.1000.99"}));
  EXPECT_EQ(place_of(kMpich), StoreLocation(StoreAtSocket{"peal.1000.mpich.4711"}));
  EXPECT_EQ(place_of(with(kMpich, {{"PEAL_JOB", "mine"}})),
            StoreLocation(StoreAtSocket{"peal.1000.mine"}));
}

TEST(StoreLocationTest, LongJobNamesAreShortenedAndStayDifferent) {
  const std::string job(200, 'x');
  const StoreLocation a = place_of(with(kOpenMpi, {{"PEAL_JOB", job + "a"}}));
  const StoreLocation b = place_of(with(kOpenMpi, {{"PEAL_JOB", job + "b"}}));
  EXPECT_LT(std::get<StoreAtSocket>(a).name.size(), 107u);
  EXPECT_FALSE(a == b);
}

TEST(StoreLocationTest, UnderSlurmTheFirstNodeIsTheMaster) {
  EXPECT_EQ(place_of(kSlurm),
            StoreLocation(StoreAtPort{"node003", 20000 + (12345 * 31 + 1) % 10000}));
  EXPECT_EQ(place_of(with(kSlurm, {{"SLURM_STEP_NODELIST", "node004"}, {"MASTER_PORT", "7"}})),
            StoreLocation(StoreAtPort{"node004", 7}));
  EXPECT_EQ(place_of(with(kSlurm, {{"SLURM_TASKS_PER_NODE", "4"}})),
            StoreLocation(StoreAtSocket{"peal.1000.12345.1"}));
}

TEST(StoreLocationTest, SlurmWithoutAJobNumberNeedsAPort) {
  Variables variables = kSlurm;
  variables.erase("SLURM_JOB_ID");
  EXPECT_THAT(place_refusal(variables), HasSubstr("MASTER_PORT is not set"));
}

TEST(StoreLocationTest, RanksOfPealRunMeetAtAUnixSocketEvenIfAPortIsSet) {
  const Variables peal_run = with(kMaster,
                                  {{"RANK", "0"},
                                   {"WORLD_SIZE", "2"},
                                   {"LOCAL_RANK", "0"},
                                   {"LOCAL_WORLD_SIZE", "2"},
                                   {"PEAL_JOB", "mine"}});
  EXPECT_EQ(place_of(peal_run), StoreLocation(StoreAtSocket{"peal.1000.mine"}));
  EXPECT_EQ(place_of(with(peal_run, {{"PEAL_MASTER_PORT", "4711"}})),
            StoreLocation(StoreAtPort{"node1", 4711}));
  const Variables part = with(peal_run, {{"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(place_of(part), StoreLocation(StoreAtPort{"node1", 29500}));
  EXPECT_EQ(place_of(with(part, {{"MASTER_ADDR", "127.0.0.1"}})),
            StoreLocation(StoreAtSocket{"peal.1000.mine"}))
      << "MASTER_ADDR is loopback, so all ranks are on this machine";
}

TEST(StoreLocationTest, NodesOnThisMachineKeepThePlaceThatTheirUserHasGiven) {
  const Variables node = with(kMaster,
                              {{"MASTER_ADDR", "127.0.0.1"},
                               {"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"LOCAL_RANK", "0"},
                               {"LOCAL_WORLD_SIZE", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"PEAL_JOB", "mine"}});
  EXPECT_EQ(place_of(node), StoreLocation(StoreAtSocket{"peal.1000.mine", "127.0.0.1:29500"}));
}

}  // namespace
}  // namespace peal::rendezvous
