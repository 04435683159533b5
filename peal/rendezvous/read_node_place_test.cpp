#include "peal/rendezvous/read_node_place.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/config/launch_mark.h"
#include "peal/rendezvous/node_variables.h"

namespace peal::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

constexpr Process kNodeProcess{.user = 7, .parent = 4711};

std::optional<NodePlace> node_of(const Variables& variables, const NodeOptions& options = {}) {
  return read_node_place(options, fixed_environment(variables), kNodeProcess);
}

std::string node_refusal(const Variables& variables, const NodeOptions& options = {}) {
  try {
    const auto place = node_of(variables, options);
    ADD_FAILURE() << (place ? "accepted as node " + std::to_string(place->node) : "accepted");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

Variables plus(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables minus(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kManagedNode = {
    {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "master"}, {"MASTER_PORT", "2222"}};
const Variables kKubeflowNode = {{"PET_NNODES", "3"},
                                 {"PET_NODE_RANK", "1"},
                                 {"PET_NPROC_PER_NODE", "4"},
                                 {"PET_MASTER_ADDR", "job-node-0-0.job"},
                                 {"PET_MASTER_PORT", "29400"}};
const Variables kDstackNode = {
    {"DSTACK_NODES_NUM", "3"}, {"DSTACK_NODE_RANK", "1"}, {"DSTACK_MASTER_NODE_IP", "10.0.0.1"}};
const Variables kSkyPilotNode = {{"SKYPILOT_NUM_NODES", "3"},
                                 {"SKYPILOT_NODE_RANK", "1"},
                                 {"SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2\n10.0.0.3"}};
const Variables kTfConfigNode = {
    {"TF_CONFIG",
     R"({"cluster": {"chief": ["m-0:2222"], "ps": ["p:1"], "worker": ["w-0:2222", "w-1:2222"]},
         "task": {"type": "worker", "index": 0}, "job": {"scaleTier": "CUSTOM"}})"}};
const Variables kVertexNode = {
    {"CLUSTER_SPEC",
     R"({"cluster": {"workerpool0": ["m-0:3333"], "workerpool1": ["w-0:3333", "w-1:3333"]},
         "task": {"type": "workerpool1", "index": 0, "trial": ""}, "environment": "cloud"})"}};
const Variables kSrunNode = {{"SLURM_JOB_ID", "77"},
                             {"SLURM_STEP_ID", "2"},
                             {"SLURM_PROCID", "1"},
                             {"SLURM_NTASKS", "8"},
                             {"SLURM_STEP_NUM_TASKS", "3"},
                             {"SLURM_STEP_NUM_NODES", "3"},
                             {"SLURM_STEP_NODELIST", "n[03-05]"}};
const Variables kOpenMpiNode = {{"OMPI_COMM_WORLD_RANK", "1"},
                                {"OMPI_COMM_WORLD_SIZE", "3"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                {"PMIX_NAMESPACE", "1034616833"}};
const Variables kMpichNode = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};

/// "1 of 3 at master:2222 by RANK and WORLD_SIZE"
std::string node_text(const std::optional<NodePlace>& place) {
  if (!place) return "one node";
  return std::to_string(place->node) + " of " + std::to_string(place->nodes) + " at " +
         place->master + ":" + std::to_string(place->port) + " by " + place->source;
}

TEST(NodePlaceTest, EachLauncherGivesThePlace) {
  EXPECT_EQ(node_text(node_of({})), "one node");
  EXPECT_EQ(node_text(node_of(kManagedNode)), "1 of 3 at master:2222 by RANK and WORLD_SIZE");
  EXPECT_EQ(node_text(node_of(kKubeflowNode)),
            "1 of 3 at job-node-0-0.job:29400 by torchrun's variables");
  EXPECT_EQ(node_text(node_of(kDstackNode)), "1 of 3 at 10.0.0.1:29500 by dstack");
  EXPECT_EQ(node_text(node_of(kSkyPilotNode)), "1 of 3 at 10.0.0.1:29500 by SkyPilot");
  EXPECT_EQ(node_text(node_of(kTfConfigNode)), "1 of 3 at m-0:2222 by TF_CONFIG");
  EXPECT_EQ(node_text(node_of(kVertexNode)), "1 of 3 at m-0:3333 by CLUSTER_SPEC");
  EXPECT_EQ(node_text(node_of(kSrunNode)), "1 of 3 at n03:22389 by srun");
  EXPECT_EQ(node_of(kSrunNode)->job, "slurm-77.2");
}

TEST(NodePlaceTest, NodesOfMpirunOnOneHostMeetAtAComputedPort) {
  for (const Variables& variables : {kOpenMpiNode, kMpichNode}) {
    const auto place = node_of(variables);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->master, "127.0.0.1");
    EXPECT_GE(place->port, 20000);
    EXPECT_LT(place->port, 30000);
    const Variables given = plus(variables, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}});
    EXPECT_THAT(node_text(node_of(given)), HasSubstr("at m:5"));
  }
  const Variables over_hosts = plus(kOpenMpiNode, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_THAT(node_refusal(over_hosts),
              AllOf(HasSubstr("node 1 of 3 (Open MPI)"), HasSubstr("MASTER_ADDR")));
  EXPECT_EQ(node_text(node_of(plus(over_hosts, {{"MASTER_ADDR", "m"}}))),
            "1 of 3 at m:29500 by Open MPI");
}

TEST(NodePlaceTest, TasksOfSrunOnOneHostMeetThere) {
  EXPECT_EQ(node_text(node_of(plus(kSrunNode, {{"SLURM_STEP_NUM_NODES", "1"}}))),
            "1 of 3 at 127.0.0.1:22389 by srun");
  EXPECT_EQ(node_text(node_of(plus(kSrunNode, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}}))),
            "1 of 3 at m:5 by srun");
}

TEST(NodePlaceTest, TheFirstLauncherOfTheTableCounts) {
  Variables all;
  for (const Variables& each : {kOpenMpiNode,
                                kMpichNode,
                                kSrunNode,
                                kTfConfigNode,
                                kSkyPilotNode,
                                kDstackNode,
                                kManagedNode,
                                kKubeflowNode}) {
    all = plus(all, each);
  }
  EXPECT_EQ(node_of(all)->source, "torchrun's variables");
  all.erase("PET_NNODES");
  EXPECT_EQ(node_of(all)->source, "RANK and WORLD_SIZE");
  all.erase("RANK");
  EXPECT_EQ(node_of(all)->source, "dstack");
  all.erase("DSTACK_NODES_NUM");
  EXPECT_EQ(node_of(all)->source, "SkyPilot");
  all.erase("SKYPILOT_NUM_NODES");
  EXPECT_EQ(node_of(all)->source, "TF_CONFIG");
  all.erase("TF_CONFIG");
  EXPECT_EQ(node_of(all)->source, "Open MPI");
  all.erase("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(node_of(all)->source, "MPICH");
  all.erase("MPI_LOCALRANKID");
  EXPECT_EQ(node_of(all)->source, "srun");
  all.erase("SLURM_STEP_ID");
  EXPECT_EQ(node_of(all)->source, "PMI");
}

TEST(NodePlaceTest, KubeflowsNodesAreCountedAndNotItsProcesses) {
  const Variables training_operator =
      plus(kKubeflowNode, {{"RANK", "1"}, {"WORLD_SIZE", "12"}, {"MASTER_ADDR", "other"}});
  EXPECT_EQ(node_text(node_of(training_operator)),
            "1 of 3 at job-node-0-0.job:29400 by torchrun's variables");
}

TEST(NodePlaceTest, AJobOfOneNodeIsAJobOfThisMachine) {
  EXPECT_EQ(node_of(plus(kManagedNode, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})), std::nullopt);
  EXPECT_EQ(node_of({{"WORLD_SIZE", "1"}}), std::nullopt);
  EXPECT_EQ(node_of({{"DSTACK_NODES_NUM", "1"}}), std::nullopt);
  EXPECT_EQ(node_of({{"TF_CONFIG", R"({"cluster": {"chief": ["m:1"]}})"}}), std::nullopt);
  EXPECT_EQ(node_of({{"TF_CONFIG", R"({"task": {"type": "master"}})"}}), std::nullopt);
  EXPECT_EQ(node_of(plus(kSrunNode, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})),
            std::nullopt);
  EXPECT_EQ(node_of(kManagedNode, {.nodes = 1}), std::nullopt);
  EXPECT_EQ(node_of(kManagedNode, {.is_standalone = true}), std::nullopt);
  EXPECT_EQ(node_of({}, {.port = 29511}), (NodePlace{.port = 29511}));
}

TEST(NodePlaceTest, ABatchScriptOfSlurmIsNotANode) {
  const Variables script = plus(minus(kSrunNode, "SLURM_STEP_ID"), {{"ENVIRONMENT", "BATCH"}});
  EXPECT_EQ(node_of(script), std::nullopt);
}

TEST(NodePlaceTest, TheMasterMayComeFromOtherVariables) {
  const Variables no_master = minus(minus(kManagedNode, "MASTER_ADDR"), "MASTER_PORT");
  EXPECT_EQ(node_text(node_of(plus(no_master, kTfConfigNode))),
            "1 of 3 at m-0:2222 by RANK and WORLD_SIZE");
  EXPECT_EQ(node_text(node_of(plus(no_master, kSrunNode))),
            "1 of 3 at n03:29500 by RANK and WORLD_SIZE");
  EXPECT_EQ(node_text(node_of(plus(minus(kKubeflowNode, "PET_MASTER_ADDR"),
                                   {{"PET_RDZV_ENDPOINT", "head:29499"}}))),
            "1 of 3 at head:29400 by torchrun's variables");
  EXPECT_EQ(node_text(node_of(plus(kDstackNode, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "5"}}))),
            "1 of 3 at 10.0.0.1:5 by dstack");
}

TEST(NodePlaceTest, AMissingMasterIsAnErrorThatSaysWhatToSet) {
  EXPECT_THAT(node_refusal(minus(kManagedNode, "MASTER_ADDR")),
              AllOf(HasSubstr("node 1 of 3 (RANK and WORLD_SIZE)"), HasSubstr("MASTER_ADDR")));
  EXPECT_THAT(node_refusal(plus(kManagedNode, {{"MASTER_ADDR", ""}})), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(node_refusal({}, {.nodes = 2, .node = 0}), HasSubstr("--master-addr"));
}

TEST(NodePlaceTest, WrongVariablesAreErrorsThatNameThem) {
  struct Case {
    Variables variables;
    const char* text;
  };
  const std::vector<Case> cases = {
      {plus(kManagedNode, {{"RANK", "3"}}),
       "RANK=3 does not fit WORLD_SIZE=3: nodes go from 0 to 2"},
      {plus(kManagedNode, {{"RANK", "one"}}), "RANK=\"one\" is not a number"},
      {minus(kManagedNode, "WORLD_SIZE"), "RANK=1 is set, but WORLD_SIZE is not"},
      {minus(kManagedNode, "RANK"), "WORLD_SIZE=3 is set, but RANK is not"},
      {plus(kManagedNode, {{"MASTER_PORT", "http"}}), "MASTER_PORT=\"http\" is not a port"},
      {plus(kKubeflowNode, {{"PET_NNODES", "1:4"}}), "PET_NNODES \"1:4\": it takes one number"},
      {plus(kKubeflowNode, {{"PET_NNODES", "4:1"}}), "PET_NNODES \"4:1\": it takes one number"},
      {minus(kKubeflowNode, "PET_NODE_RANK"), "PET_NODE_RANK is not set"},
      {minus(kDstackNode, "DSTACK_NODE_RANK"), "DSTACK_NODE_RANK is not set"},
      {plus(kSkyPilotNode, {{"SKYPILOT_NODE_RANK", "9"}}), "SKYPILOT_NODE_RANK=9 does not fit"},
      {{{"TF_CONFIG", "{"}}, "TF_CONFIG is not the JSON text of a cluster and a task"},
      {{{"TF_CONFIG", R"({"cluster": {"worker": "w:1"}})"}}, "TF_CONFIG is not the JSON text"},
      {{{"TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1"]}})"}}, "which of them this is"},
      {{{"TF_CONFIG",
         R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})"}},
       "TF_CONFIG has no worker 1"},
      {{{"TF_CONFIG",
         R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})"}},
       "a task of type \"evaluator\", which does not train"},
      {plus(kSrunNode, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"MPI_LOCALRANKID", "0"}}),
       "PMI_SIZE=1 says that this process is alone, but srun has started 3 tasks"},
      {plus(kSrunNode, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
       "OMPI_COMM_WORLD_SIZE=1 says that this process is alone"},
  };
  for (const Case& wrong : cases) {
    EXPECT_THAT(node_refusal(wrong.variables), HasSubstr(wrong.text)) << wrong.text;
  }
}

TEST(NodePlaceTest, OptionsComeBeforeVariables) {
  const NodeOptions all = {.nodes = 2, .node = 1, .master = "m", .port = 5, .job = "j"};
  for (const Variables& variables : {Variables(), kManagedNode, kSrunNode}) {
    const auto place = node_of(variables, all);
    EXPECT_EQ(node_text(place), "1 of 2 at m:5 by --nnodes 2");
    EXPECT_EQ(place->job, "j");
  }
  EXPECT_THAT(node_text(node_of({}, {.nodes = 2, .node = 0, .master = "m"})), HasSubstr("m:29500"));
}

TEST(NodePlaceTest, VariablesCompleteTheOptions) {
  EXPECT_EQ(node_text(node_of(kSrunNode, {.nodes = 3})), "1 of 3 at n03:22389 by srun");
  EXPECT_EQ(node_text(node_of(kManagedNode, {.master = "m"})),
            "1 of 3 at m:2222 by RANK and WORLD_SIZE");
  EXPECT_EQ(node_text(node_of(kManagedNode, {.node = 2})),
            "2 of 3 at master:2222 by RANK and WORLD_SIZE");
  EXPECT_THAT(node_refusal(kSrunNode, {.nodes = 2}),
              HasSubstr("--nnodes 2: which of the nodes is this?"));
  EXPECT_THAT(node_refusal({}, {.nodes = 2, .master = "m"}), HasSubstr("--node-rank, 0 to 1"));
}

TEST(NodePlaceTest, WrongOptionsAreErrors) {
  EXPECT_THAT(node_refusal({}, {.nodes = 2, .node = 2, .master = "m"}),
              HasSubstr("--node-rank 2 does not fit --nnodes 2"));
  EXPECT_THAT(node_refusal({}, {.nodes = 1, .node = 1}), HasSubstr("--node-rank 1 does not fit"));
  EXPECT_THAT(node_refusal({}, {.node = 0}), HasSubstr("--node-rank 0 needs the number of nodes"));
}

TEST(NodePlaceTest, InsideARankOnlyOptionsCount) {
  const std::string mark = launch_mark(fixed_environment(kManagedNode), 1, 3);
  const std::vector<Variables> ranks = {
      plus(kManagedNode, {{kLaunchMark, mark}}),
      plus(kManagedNode, {{"TORCHELASTIC_RUN_ID", "none"}}),
      plus(kManagedNode, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "3"}}),
      plus(kManagedNode, {{"LOCAL_RANK", "0"}}),
      plus(plus(kManagedNode, kSrunNode), {{kLaunchMark, mark}}),
  };
  for (const Variables& rank : ranks) {
    EXPECT_EQ(node_of(rank), std::nullopt);
    EXPECT_THAT(node_refusal(rank, {.nodes = 2, .node = 0}), HasSubstr("--master-addr"));
    EXPECT_THAT(node_text(node_of(rank, {.nodes = 2, .node = 0, .master = "m"})),
                HasSubstr("0 of 2 at m:29500"));
  }
  const Variables alone_on_its_node = {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  EXPECT_EQ(node_of(plus(kManagedNode, alone_on_its_node))->node, 1);
}

TEST(NodePlaceTest, TheOnlyRankOnANodeOfASubmittedJobIsANode) {
  Variables rank = plus(kManagedNode, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  rank[kLaunchMark] = launch_mark(fixed_environment(rank), 1, 3);
  EXPECT_EQ(node_of(rank), std::nullopt);  // a rank of peal run
  rank[kNodeMark] = "1";
  EXPECT_EQ(node_of(rank)->node, 1);
}

TEST(NodePlaceTest, AnEndpointIsAHostAndAPort) {
  EXPECT_EQ(parse_endpoint("h:5", "-").host, "h");
  EXPECT_EQ(parse_endpoint("h:5", "-").port, 5);
  EXPECT_EQ(parse_endpoint("h", "-").port, std::nullopt);
  EXPECT_EQ(parse_endpoint("h:0", "-").port, std::nullopt);
  EXPECT_EQ(parse_endpoint("[::1]:5", "-").host, "::1");
  EXPECT_EQ(parse_endpoint("[::1]:5", "-").port, 5);
  EXPECT_EQ(parse_endpoint("::1", "-").host, "::1");
  for (const char* wrong : {"", ":5", "h:", "h:99999"}) {
    EXPECT_THROW(parse_endpoint(wrong, "--rdzv-endpoint"), Error) << wrong;
  }
}

}  // namespace
}  // namespace peal::rendezvous
