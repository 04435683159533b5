#include "peal/launch/job/process_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/base/testing/error_of.h"
#include "peal/launch/job/node_plan.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const MasterAddress kMaster{"h0", 29500};

Role planned_role(const std::string& name, NodeCount nodes, int ranks) {
  return {.name = name, .nodes = nodes, .ranks_per_node = ranks, .command = {"./train"}};
}

/// h0, h1, ... with these slots.
std::vector<JobHost> hosts_with(const std::vector<int>& slots) {
  std::vector<JobHost> hosts;
  for (const int count : slots) hosts.push_back({fmt::format("h{}", hosts.size()), count});
  return hosts;
}

ProcessPlan plan_of(const Job& job, const std::vector<int>& slots) {
  return plan_processes(job, hosts_with(slots), kMaster);
}

std::vector<std::string> hosts_of(const ProcessPlan& plan) {
  std::vector<std::string> hosts;
  for (const PlannedProcess& process : plan.processes) hosts.push_back(process.host);
  return hosts;
}

std::vector<std::string> values_of(const ProcessPlan& plan, const std::string& name) {
  std::vector<std::string> values;
  for (const PlannedProcess& process : plan.processes) {
    const auto value = process.environment.find(name);
    values.push_back(value == process.environment.end() ? "-" : value->second);
  }
  return values;
}

std::string plan_problem(const Job& job, const std::vector<int>& slots) {
  return usage_error_of([&] { plan_of(job, slots); });
}

TEST(ProcessPlanTest, RanksCountThroughNodesAndRoles) {
  const Job job{.name = "j", .roles = {planned_role("a", {2, 2}, 2), planned_role("b", {1, 1}, 3)}};
  const ProcessPlan plan = plan_of(job, {1, 1, 1});
  EXPECT_THAT(hosts_of(plan), ElementsAre("h0", "h0", "h1", "h1", "h2", "h2", "h2"));
  EXPECT_THAT(values_of(plan, "RANK"), ElementsAre("0", "1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(values_of(plan, "WORLD_SIZE"), testing::Each("7"));
  EXPECT_THAT(values_of(plan, "LOCAL_RANK"), ElementsAre("0", "1", "0", "1", "0", "1", "2"));
  EXPECT_THAT(values_of(plan, "LOCAL_WORLD_SIZE"), ElementsAre("2", "2", "2", "2", "3", "3", "3"));
  EXPECT_THAT(values_of(plan, "GROUP_RANK"), ElementsAre("0", "0", "1", "1", "2", "2", "2"));
  EXPECT_EQ(values_of(plan, "NODE_RANK"), values_of(plan, "GROUP_RANK"));
  EXPECT_THAT(values_of(plan, "GROUP_WORLD_SIZE"), testing::Each("3"));
  EXPECT_THAT(values_of(plan, "PEAL_ROLE"), ElementsAre("a", "a", "a", "a", "b", "b", "b"));
  EXPECT_THAT(values_of(plan, "PEAL_ROLE_RANK"), ElementsAre("0", "1", "2", "3", "0", "1", "2"));
  EXPECT_THAT(values_of(plan, "MASTER_ADDR"), testing::Each("h0"));
  EXPECT_THAT(values_of(plan, "MASTER_PORT"), testing::Each("29500"));
  EXPECT_THAT(values_of(plan, "CLUSTER_SPEC"), testing::Each("-"));
}

TEST(ProcessPlanTest, HorovodsVariablesCountNodesAsHosts) {
  const Job job{.name = "j", .roles = {planned_role("a", {2, 2}, 2), planned_role("b", {1, 1}, 3)}};
  const ProcessPlan plan = plan_of(job, {1, 1, 1});
  EXPECT_EQ(values_of(plan, "HOROVOD_RANK"), values_of(plan, "RANK"));
  EXPECT_EQ(values_of(plan, "HOROVOD_SIZE"), values_of(plan, "WORLD_SIZE"));
  EXPECT_EQ(values_of(plan, "HOROVOD_LOCAL_RANK"), values_of(plan, "LOCAL_RANK"));
  EXPECT_EQ(values_of(plan, "HOROVOD_LOCAL_SIZE"), values_of(plan, "LOCAL_WORLD_SIZE"));
  EXPECT_THAT(values_of(plan, "HOROVOD_CROSS_RANK"),
              ElementsAre("0", "0", "1", "1", "2", "2", "0"));
  EXPECT_THAT(values_of(plan, "HOROVOD_CROSS_SIZE"),
              ElementsAre("3", "3", "3", "3", "3", "3", "1"));
  EXPECT_EQ(values_of(plan, "HOROVOD_HOSTNAME"), hosts_of(plan));
}

TEST(ProcessPlanTest, AHostTakesNodesUntilItsSlotsAreUsedButAtLeastOne) {
  const Job job{.name = "j", .roles = {planned_role("a", {4, 4}, 2)}};
  EXPECT_THAT(hosts_of(plan_of(job, {4, 1, 3, 8})),
              ElementsAre("h0", "h0", "h0", "h0", "h1", "h1", "h2", "h2"));
  EXPECT_THAT(values_of(plan_of(job, {4, 1, 3, 8}), "LOCAL_RANK"),
              ElementsAre("0", "1", "0", "1", "0", "1", "0", "1"));
  EXPECT_EQ(plan_problem(job, {2, 2}),
            "the job needs 4 nodes (4 a), but the 2 hosts have room for 2; add hosts or slots (-H "
            "host:slots, --hostfile)");
  EXPECT_THAT(plan_problem(job, {}), HasSubstr("the 0 hosts have room for 0"));
}

TEST(ProcessPlanTest, RolesThatMayGrowTakeTheRoomThatIsThere) {
  const Job job{.name = "j",
                .roles = {planned_role("a", {1, 3}, 1),
                          planned_role("b", {1, 1}, 1),
                          planned_role("c", {1, 9}, 1)}};
  const auto roles = [&](int hosts) {
    return values_of(plan_of(job, std::vector<int>(static_cast<std::size_t>(hosts), 1)),
                     "PEAL_ROLE");
  };
  EXPECT_THAT(roles(3), ElementsAre("a", "b", "c"));
  EXPECT_THAT(roles(4), ElementsAre("a", "a", "b", "c"));
  EXPECT_THAT(roles(6), ElementsAre("a", "a", "a", "b", "c", "c"));
  EXPECT_EQ(roles(20).size(), 13u);
  EXPECT_THAT(plan_problem(job, {1, 1}), HasSubstr("needs 3 nodes (1 a, 1 b, 1 c)"));
}

TEST(ProcessPlanTest, TooFewHostsHaveRoomForSomeRanks) {
  const Job job{.name = "j", .roles = {planned_role("a", {1, 1}, 2), planned_role("b", {2, 3}, 3)}};
  for (const auto& [hosts, ranks] : {std::pair(0, 0), {1, 2}, {2, 5}, {3, 8}, {4, 11}, {5, 11}}) {
    EXPECT_EQ(ranks_with_room(job, hosts_with(std::vector(static_cast<std::size_t>(hosts), 1))),
              ranks);
  }
}

TEST(ProcessPlanTest, SpareHostsStayFree) {
  Job job{.name = "j", .roles = {planned_role("a", {1, 9}, 1)}};
  job.spare_nodes = 2;
  const ProcessPlan plan = plan_of(job, {1, 1, 1, 1});
  EXPECT_THAT(hosts_of(plan), ElementsAre("h0", "h1"));
  EXPECT_THAT(plan.spare_hosts, ElementsAre("h2", "h3"));
  EXPECT_EQ(plan_problem(job, {4, 4}),
            "the job needs 1 node (1 a) and 2 spare hosts, but the 2 hosts have room for 0; add "
            "hosts or slots (-H host:slots, --hostfile)");
}

TEST(ProcessPlanTest, VariablesOfTheRoleOverrideThoseOfTheJob) {
  Job job{.name = "j", .roles = {planned_role("a", {1, 1}, 1)}};
  job.env = {{"A", "job"}, {"B", "$(A) $$"}};
  job.roles[0].env = {{"A", "role"}};
  const ProcessPlan plan = plan_of(job, {1});
  EXPECT_THAT(values_of(plan, "A"), ElementsAre("role"));
  EXPECT_THAT(values_of(plan, "B"), ElementsAre("$(A) $$"));  // references are of one form only
}

constexpr std::string_view kTraining = R"(
trainingInput:
  scaleTier: CUSTOM
  masterType: standard
  masterConfig: {imageUri: torch}
  workerType: standard
  workerCount: 2
  evaluatorType: standard
  evaluatorCount: 1
)";

TEST(ProcessPlanTest, InATrainingInputRanksCountNodesAndEvaluatorsAreNotRanks) {
  const ProcessPlan plan = plan_of(read_job(kTraining, "c.yaml").job, {1, 1, 1, 1});
  EXPECT_THAT(values_of(plan, "RANK"), ElementsAre("0", "1", "2", "-"));
  EXPECT_THAT(values_of(plan, "WORLD_SIZE"), ElementsAre("3", "3", "3", "-"));
  EXPECT_THAT(values_of(plan, "MASTER_ADDR"), ElementsAre("h0", "h0", "h0", "-"));
  EXPECT_THAT(values_of(plan, "PEAL_ROLE"), ElementsAre("master", "worker", "worker", "evaluator"));
  EXPECT_THAT(values_of(plan, "PEAL_ROLE_RANK"), ElementsAre("0", "0", "1", "0"));
  EXPECT_EQ(plan.processes[3].rank, 3);
  EXPECT_FALSE(plan.processes[3].in_world);
}

TEST(ProcessPlanTest, ClusterSpecAndTfConfigDescribeATrainingInput) {
  const ProcessPlan plan = plan_of(read_job(kTraining, "c.yaml").job, {1, 2, 1});
  const Json cluster = Json::parse(plan.processes[2].environment.at("CLUSTER_SPEC"));
  EXPECT_EQ(cluster["cluster"],
            Json::parse(R"({"master": ["h0:2222"], "worker": ["h1:2222", "h1:2223"],
                                                "evaluator": ["h2:2222"]})"));
  EXPECT_EQ(cluster["task"], Json::parse(R"({"type": "worker", "index": 1})"));
  EXPECT_EQ(cluster["environment"], "cloud");
  EXPECT_EQ(cluster["job"]["workerType"], "standard");
  EXPECT_EQ(cluster["job"]["workerCount"], 2);
  const Json tf = Json::parse(plan.processes[3].environment.at("TF_CONFIG"));
  EXPECT_EQ(tf["cluster"],
            Json::parse(R"({"master": ["h0:2222"], "worker": ["h1:2222", "h1:2223"]})"));
  EXPECT_EQ(tf["task"], Json::parse(R"({"type": "evaluator", "index": 0, "cloud": ""})"));
  EXPECT_EQ(tf["job"], cluster["job"]);
  EXPECT_EQ(tf["environment"], "cloud");
}

TEST(ProcessPlanTest, TheMasterIsTheChiefIfTheJobAsksForIt) {
  const Job job = read_job(std::string(kTraining) + "  useChiefInTfConfig: true\n", "c.yaml").job;
  const ProcessPlan plan = plan_of(job, {1, 1, 1, 1});
  const Json tf = Json::parse(plan.processes[0].environment.at("TF_CONFIG"));
  EXPECT_EQ(tf["task"]["type"], "chief");
  EXPECT_TRUE(tf["cluster"].contains("chief"));
  EXPECT_FALSE(tf["cluster"].contains("master"));
  const Json cluster = Json::parse(plan.processes[0].environment.at("CLUSTER_SPEC"));
  EXPECT_EQ(cluster["task"]["type"], "master");
}

constexpr std::string_view kPools = R"(
workerPoolSpecs:
- containerSpec:
    imageUri: torch
    command: [python3, train.py]
    args: [--out, $(AIP_MODEL_DIR), --rank=$(RANK), $$(RANK), $(UNKNOWN)]
    env:
    - {name: A, value: $(RANK)/$(B)/$(AIP_MODEL_DIR)}
    - {name: B, value: $(A)}
- replicaCount: 2
  containerSpec: {imageUri: torch}
baseOutputDirectory: {outputUriPrefix: gs://b}
)";

TEST(ProcessPlanTest, ReferencesOfWorkerPoolsAreReplaced) {
  const ProcessPlan plan = plan_of(read_job(kPools, "c.yaml").job, {1, 1, 1});
  EXPECT_THAT(plan.processes[0].command, ElementsAre("python3", "train.py"));
  EXPECT_THAT(plan.processes[0].args,
              ElementsAre("--out", "gs://b/model/", "--rank=0", "$(RANK)", "$(UNKNOWN)"));
  EXPECT_THAT(values_of(plan, "A"), ElementsAre("0/$(B)/gs://b/model/", "-", "-"));
  EXPECT_THAT(values_of(plan, "B"), ElementsAre("0/$(B)/gs://b/model/", "-", "-"));
}

TEST(ProcessPlanTest, ClusterSpecAndTfConfigDescribeWorkerPools) {
  const ProcessPlan plan = plan_of(read_job(kPools, "c.yaml").job, {1, 1, 1});
  const Json cluster = Json::parse(plan.processes[2].environment.at("CLUSTER_SPEC"));
  EXPECT_EQ(cluster, Json::parse(R"json({
      "cluster": {"workerpool0": ["h0:2222"], "workerpool1": ["h1:2222", "h2:2222"]},
      "environment": "cloud",
      "task": {"type": "workerpool1", "index": 1},
      "job": "{\"python_module\":\"\",\"package_uris\":[],\"job_args\":[]}"})json"));
  const Json tf = Json::parse(plan.processes[0].environment.at("TF_CONFIG"));
  EXPECT_EQ(tf["cluster"],
            Json::parse(R"({"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]})"));
  EXPECT_EQ(tf["task"], Json::parse(R"({"type": "chief", "index": 0})"));
}

TEST(ProcessPlanTest, AnIpv6AddressHasBracketsInTheCluster) {
  const Job job = read_job("workerPoolSpecs: [{containerSpec: {imageUri: t}}]", "c.yaml").job;
  const std::vector<JobHost> hosts = {{"fe80::1", 1}};
  const ProcessPlan plan = plan_processes(job, hosts, kMaster);
  EXPECT_THAT(plan.processes[0].environment.at("CLUSTER_SPEC"), HasSubstr("\"[fe80::1]:2222\""));
}

TEST(ProcessPlanTest, TheTextShowsNoSecret) {
  Job job{.name = "j", .roles = {planned_role("a", {1, 1}, 2)}};
  job.form = JobForm::kWorkerPoolSpecs;
  job.document = "{}";
  job.env = {{"MY_TOKEN", "s3cr3t"},
             {"DbPassword", "s3cr3t2"},
             {"API_KEY", "x"},
             {"client_secret", "k9k9k9"},
             {"URL", "u:$(MY_TOKEN)@h"},
             {"PLAIN", "p l"}};
  job.roles[0].args = {"--token=$(DbPassword)"};
  const std::string text = to_text(plan_of(job, {2}), job, kMaster);
  EXPECT_THAT(text,
              AllOf(HasSubstr("MY_TOKEN='(hidden)'"),
                    HasSubstr("DbPassword='(hidden)'"),
                    HasSubstr("API_KEY='(hidden)'"),
                    HasSubstr("URL='u:(hidden)@h'"),
                    HasSubstr("'--token=(hidden)'"),
                    HasSubstr("PLAIN='p l'")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("s3cr3t")), Not(HasSubstr("k9k9k9"))));
}

TEST(ProcessPlanTest, TheTextIsOneLineForEachFact) {
  Job job{.name = "mnist", .roles = {planned_role("trainer", {2, 2}, 1)}};
  job.roles[0].args = {"a b", "it's", "\n", ""};
  job.spare_nodes = 1;
  EXPECT_EQ(to_text(plan_of(job, {1, 1, 1}), job, kMaster),
            R"(job mnist: 2 nodes on 2 hosts, 2 processes
the ranks meet at h0, port 29500
spare hosts: h2

all ranks
  GROUP_WORLD_SIZE=2
  HOROVOD_CROSS_SIZE=2
  HOROVOD_LOCAL_RANK=0
  HOROVOD_LOCAL_SIZE=1
  HOROVOD_SIZE=2
  LOCAL_RANK=0
  LOCAL_WORLD_SIZE=1
  MASTER_ADDR=h0
  MASTER_PORT=29500
  PEAL_ROLE=trainer
  WORLD_SIZE=2

rank 0: trainer 0 on h0 (node 0, local rank 0)
  command: ./train 'a b' 'it'\''s' '\x0a' ''
  GROUP_RANK=0
  HOROVOD_CROSS_RANK=0
  HOROVOD_HOSTNAME=h0
  HOROVOD_RANK=0
  NODE_RANK=0
  PEAL_ROLE_RANK=0
  RANK=0

rank 1: trainer 1 on h1 (node 1, local rank 0)
  command: ./train 'a b' 'it'\''s' '\x0a' ''
  GROUP_RANK=1
  HOROVOD_CROSS_RANK=1
  HOROVOD_HOSTNAME=h1
  HOROVOD_RANK=1
  NODE_RANK=1
  PEAL_ROLE_RANK=1
  RANK=1
)");
}

}  // namespace
}  // namespace peal::launch
