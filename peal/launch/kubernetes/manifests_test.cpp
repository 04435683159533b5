#include "peal/launch/kubernetes/manifests.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/variables.h"

namespace peal::launch::kubernetes {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSecretText = "a secret of the ranks";

Role role(const std::string& name, int nodes) {
  return {.name = name, .nodes = {nodes, nodes}, .image = "image:1", .command = {"train"}};
}
Job master_and_workers(int workers) {
  return {.name = "mnist", .roles = {role("master", 1), role("worker", workers)}};
}
ManifestOptions options() { return {.id = "mnist", .secret = Secret(kSecretText)}; }

/// The Indexed Job of the role with this index.
Json job_of(const Job& job, std::size_t role) { return manifests(job, options())[2 + role]; }
Json pod_of(const Job& job, std::size_t role) {
  return job_of(job, role)["spec"]["template"]["spec"];
}
Json container_of(const Job& job, std::size_t role) { return pod_of(job, role)["containers"][0]; }

/// The entry of a variable; null if the node does not get it.
Json variable(const Json& container, const std::string& name) {
  for (const Json& entry : container["env"]) {
    if (entry["name"] == name) return entry;
  }
  return {};
}

std::string refusal(const Job& job) {
  try {
    manifests(job, options());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "not refused";
}

std::string refusal_of_train_job(const Job& job) {
  try {
    train_job_manifests(job, options());
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Manifests, AServiceASecretAndAnIndexedJobForEachRole) {
  std::vector<std::string> kinds;
  for (const Json& object : manifests(master_and_workers(2), options())) {
    kinds.push_back(object["kind"].get<std::string>() + " " +
                    object["metadata"]["name"].get<std::string>());
    EXPECT_EQ(object["metadata"]["labels"]["peal.job"], "mnist");
  }
  EXPECT_THAT(kinds,
              ElementsAre("Service mnist", "Secret mnist", "Job mnist-master", "Job mnist-worker"));
}

TEST(Manifests, TheSecretAndTheValuesAreOnlyInTheSecretObject) {
  Job job = master_and_workers(2);
  job.env["TOKEN"] = "a value of the user";
  for (const Json& object : manifests(job, options())) {
    const bool is_secret = object["kind"] == "Secret";
    for (const char* const text : {kSecretText, "a value of the user"}) {
      EXPECT_EQ(object.dump().find(text) != std::string::npos, is_secret) << object["kind"];
    }
  }
}

TEST(Manifests, TheTextForPeopleHidesAllValues) {
  Job job = master_and_workers(1);
  job.env["TOKEN"] = "a value of the user";
  const std::string text = to_shown_text(manifests(job, options()));
  EXPECT_THAT(text, HasSubstr(R"x("job.TOKEN": "(hidden)")x"));
  EXPECT_THAT(text, Not(AnyOf(HasSubstr(kSecretText), HasSubstr("a value of the user"))));
}

TEST(Manifests, ARoleOverridesAVariableOfTheJob) {
  Job job = master_and_workers(1);
  job.env = {{"A", "of the job"}};
  job.roles[1].env = {{"A", "of the role"}};
  const Json texts = manifests(job, options())[1]["stringData"];
  const auto key = [](const Json& entry) {
    return entry["valueFrom"]["secretKeyRef"]["key"].get<std::string>();
  };
  EXPECT_EQ(texts[key(variable(container_of(job, 0), "A"))], "of the job");
  EXPECT_EQ(texts[key(variable(container_of(job, 1), "A"))], "of the role");
}

TEST(Manifests, ASingleNodeHasItsRankAsANumber) {
  EXPECT_EQ(variable(container_of(master_and_workers(1), 0), "RANK")["value"], "0");
  EXPECT_EQ(variable(container_of(master_and_workers(1), 1), "RANK")["value"], "1");
}

TEST(Manifests, TheFirstRoleNeedsNoShellBecauseTheIndexIsTheRank) {
  Job job{.name = "mnist", .roles = {role("node", 3)}};
  job.roles[0].command.clear();
  const Json container = container_of(job, 0);
  EXPECT_FALSE(container.contains("command"));
  EXPECT_THAT(variable(container, "RANK").dump(), HasSubstr("job-completion-index"));
}

TEST(Manifests, AShellComputesTheRankOfALaterRole) {
  const Json container = container_of(master_and_workers(2), 1);
  EXPECT_TRUE(variable(container, "RANK").is_null());
  EXPECT_THAT(container["command"].get<std::vector<std::string>>(),
              ElementsAre("sh",
                          "-c",
                          "export RANK=$$((JOB_COMPLETION_INDEX + 1)) "
                          "GROUP_RANK=$$((JOB_COMPLETION_INDEX + 1)) "
                          "NODE_RANK=$$((JOB_COMPLETION_INDEX + 1)) "
                          "HOROVOD_RANK=$$((JOB_COMPLETION_INDEX + 1)) "
                          "HOROVOD_CROSS_RANK=$$((JOB_COMPLETION_INDEX + 1)); exec \"$$@\"",
                          "sh",
                          "train"));
}

TEST(Manifests, WithoutACommandEachNodeOfALaterRoleHasAJobOfItsOwn) {
  Job job = master_and_workers(2);
  job.roles[1].command.clear();
  job.form = JobForm::kTrainingInput;
  job.document = "{}";
  const std::vector<Json> objects = manifests(job, options());
  ASSERT_EQ(objects.size(), 5u);
  for (const int node : {0, 1}) {
    const Json& object = objects[3 + node];
    EXPECT_EQ(object["metadata"]["name"], "mnist-worker-" + std::to_string(node));
    EXPECT_EQ(object["spec"]["completions"], 1);
    const Json& container = object["spec"]["template"]["spec"]["containers"][0];
    EXPECT_FALSE(container.contains("command"));
    EXPECT_EQ(variable(container, "RANK")["value"], std::to_string(1 + node));
    EXPECT_EQ(variable(container, "PEAL_ROLE_RANK")["value"], std::to_string(node));
  }
  EXPECT_THAT(objects[1]["stringData"].dump(), HasSubstr("mnist-worker-1-0.mnist:2222"));
  job.roles.push_back(role("worker-1", 1));
  EXPECT_THAT(refusal(job), HasSubstr("two roles of the job need the name mnist-worker-1"));
}

TEST(Manifests, RanksAreCountedOverAllRolesBefore) {
  Job job = master_and_workers(3);
  job.roles.push_back(role("evaluator", 2));
  EXPECT_THAT(container_of(job, 2)["command"][2], HasSubstr("JOB_COMPLETION_INDEX + 4"));
  EXPECT_EQ(variable(container_of(job, 2), "WORLD_SIZE")["value"], "6");
}

TEST(Manifests, PealRunStartsSeveralRanksOfANode) {
  Job job = master_and_workers(1);
  job.roles[0].ranks_per_node = job.roles[1].ranks_per_node = 4;
  const Json container = container_of(job, 0);
  EXPECT_THAT(container["command"].get<std::vector<std::string>>(),
              ElementsAre("peal", "run", "-n", "4", "--", "train"));
  EXPECT_TRUE(variable(container, "LOCAL_RANK").is_null());
}

TEST(Manifests, KubernetesExpandsNoWordOfTheJob) {
  Job job = master_and_workers(1);
  job.roles[0].command = {"train", "$(A)"};
  job.roles[0].args = {"$$B"};
  EXPECT_EQ(container_of(job, 0)["command"][1], "$$(A)");
  EXPECT_EQ(container_of(job, 0)["args"][0], "$$$$B");
}

TEST(Manifests, LimitsAreRequestsToo) {
  Job job = master_and_workers(1);
  job.roles[0].resources = {.cpus = 0.5, .memory = Bytes(3 << 20), .gpus = 2};
  const Json resources = container_of(job, 0)["resources"];
  EXPECT_EQ(resources["limits"], resources["requests"]);
  EXPECT_EQ(resources["limits"].dump(), R"({"cpu":"500m","memory":"3Mi","nvidia.com/gpu":"2"})");
  EXPECT_FALSE(container_of(job, 1).contains("resources"));
}

TEST(Manifests, SharedMemoryIsHalfOfTheMemoryUnlessTheJobSaysMore) {
  Job job = master_and_workers(1);
  EXPECT_EQ(pod_of(job, 0)["volumes"][0]["emptyDir"].dump(), R"({"medium":"Memory"})");
  job.roles[0].resources.memory = Bytes(4 << 20);
  EXPECT_EQ(pod_of(job, 0)["volumes"][0]["emptyDir"]["sizeLimit"], "2Mi");
  job.roles[0].resources.shm = Bytes(1000);
  EXPECT_EQ(pod_of(job, 0)["volumes"][0]["emptyDir"]["sizeLimit"], "1000");
}

TEST(Manifests, RestartsLimitTheFailuresOfEachNode) {
  Job job = master_and_workers(4);
  EXPECT_EQ(job_of(job, 1)["spec"]["backoffLimitPerIndex"], 0);
  EXPECT_EQ(job_of(job, 1)["spec"]["maxFailedIndexes"], 0);
  EXPECT_FALSE(job_of(job, 1)["spec"].contains("backoffLimit")) << "it counts all nodes";
  EXPECT_THAT(job_of(job, 1)["spec"]["podFailurePolicy"].dump(), HasSubstr("\"NotIn\""));
  job.restarts.most = 3;
  EXPECT_EQ(job_of(job, 1)["spec"]["backoffLimitPerIndex"], 3);
  EXPECT_EQ(job_of(job, 1)["spec"]["maxFailedIndexes"], 0);
  EXPECT_THAT(job_of(job, 1)["spec"]["podFailurePolicy"].dump(), HasSubstr("[126,127,128]"));
}

TEST(Manifests, OnlyTheFirstRoleMayDecideAloneInKubernetes) {
  Job job = master_and_workers(1);
  EXPECT_FALSE(job_of(job, 0)["spec"].contains("successPolicy"));
  job.success_role = "master";
  EXPECT_TRUE(job_of(job, 0)["spec"].contains("successPolicy"));
  EXPECT_EQ(job_of(job, 0)["metadata"]["annotations"]["peal.decides-result"], "true");
  EXPECT_EQ(job_of(job, 1)["metadata"]["annotations"]["peal.decides-result"], "false");
}

TEST(Manifests, TheGraceIsRoundedUpToSeconds) {
  Job job = master_and_workers(1);
  job.grace = std::chrono::milliseconds(1001);
  EXPECT_EQ(pod_of(job, 0)["terminationGracePeriodSeconds"], 2);
}

TEST(Manifests, TheJobMayHaveItsOwnSecret) {
  Job job = master_and_workers(1);
  job.env = {{"PEAL_SECRET", "another secret of the ranks"}};
  EXPECT_EQ(manifests(job, options())[1]["stringData"].dump(),
            R"({"job.PEAL_SECRET":"another secret of the ranks"})");
  job.env = {{"PEAL_SECRET_FILE", "/secrets/peal"}};
  EXPECT_TRUE(variable(container_of(job, 0), "PEAL_SECRET").is_null());
}

TEST(Manifests, JobsThatKubernetesCannotRunAreRejected) {
  const auto refuse = [](auto change) {
    Job job = master_and_workers(2);
    change(job);
    return refusal(job);
  };
  EXPECT_THAT(refuse([](Job& job) { job.roles[1].image.clear(); }),
              HasSubstr("role \"worker\" has no image"));
  EXPECT_THAT(refuse([](Job& job) {
                job.roles[0].ranks_per_node = job.roles[1].ranks_per_node = 2;
                job.roles[0].command.clear();
              }),
              HasSubstr("2 ranks on each node and no command"));
  EXPECT_THAT(refuse([](Job& job) { job.roles[1].ranks_per_node = 2; }),
              HasSubstr("have 1 and 2 ranks on each node"));
  EXPECT_THAT(refuse([](Job& job) { job.roles[1].nodes.least = 1; }), HasSubstr("1 to 2 nodes"));
  EXPECT_THAT(refuse([](Job& job) { job.files = {{"a", "b"}}; }), HasSubstr("copies no files"));
  EXPECT_THAT(refuse([](Job& job) { job.directory = "a"; }), HasSubstr("not absolute"));
  EXPECT_THAT(refuse([](Job& job) { job.env["RANK"] = "1"; }), HasSubstr("RANK"));
  EXPECT_THAT(refuse([](Job& job) { job.env["a b"] = "1"; }), HasSubstr("a b"));
  EXPECT_THAT(refuse([](Job& job) { job.env["1"] = "1"; }), HasSubstr("without a digit"));
  EXPECT_THAT(refuse([](Job& job) { job.env["A"] = "\xff"; }), HasSubstr("UTF-8"));
  EXPECT_THAT(refuse([](Job& job) { job.env["A"] = std::string("a\0b", 3); }), HasSubstr("A"));
  EXPECT_THAT(refuse([](Job& job) { job.env["A"] = std::string(131'072, 'a'); }),
              HasSubstr("no process"));
  EXPECT_THAT(refuse([](Job& job) {
                for (int i = 0; i < 10; ++i)
                  job.env["A" + std::to_string(i)] = std::string(110'000, 'a');
              }),
              HasSubstr("a Secret of Kubernetes"));
  EXPECT_THAT(refuse([](Job& job) { job.labels["a"] = "b c"; }), HasSubstr("no label"));
  EXPECT_THAT(refuse([](Job& job) { job.roles.clear(); }), HasSubstr("roles"));
}

TEST(Manifests, FieldsWithoutAUseAreNamedOnce) {
  Job job = master_and_workers(1);
  EXPECT_THAT(unused_fields(job), IsEmpty());
  job.priority = 1;
  job.spare_nodes = 1;
  EXPECT_THAT(unused_fields(job), ElementsAre(HasSubstr("priority"), HasSubstr("spare_nodes")));
}

TEST(TrainJob, HasTheNodesOfAllRoles) {
  Job job = master_and_workers(3);
  job.roles[0].ranks_per_node = job.roles[1].ranks_per_node = 2;
  const Json object = train_job_manifests(job, options())[1];
  EXPECT_EQ(object["spec"]["trainer"]["numNodes"], 4);
  EXPECT_EQ(object["spec"]["trainer"]["numProcPerNode"], 2);
  EXPECT_THAT(object["spec"]["trainer"]["command"][2],
              HasSubstr("export RANK=$$PET_NODE_RANK GROUP_RANK="));
}

TEST(TrainJob, RefusesWhatItCannotExpress) {
  const auto refuse = [](auto change) {
    Job job = master_and_workers(2);
    change(job);
    return refusal_of_train_job(job);
  };
  EXPECT_THAT(refuse([](Job& job) { job.roles[1].image = "other"; }), HasSubstr("differ"));
  EXPECT_THAT(refuse([](Job& job) { job.success_role = "master"; }), HasSubstr("success_role"));
  EXPECT_THAT(refuse([](Job& job) { job.restarts.most = 1; }), HasSubstr("restarts"));
  EXPECT_THAT(refuse([](Job& job) { job.directory = "/a"; }), HasSubstr("directory"));
  EXPECT_THAT(refuse([](Job& job) {
                job.roles = {role("node", 2)};
                job.roles[0].command.clear();
              }),
              HasSubstr("no command"));
  EXPECT_THAT(refuse([](Job& job) {
                for (int i = 0; i < 130; ++i) job.env["A" + std::to_string(i)] = "";
              }),
              HasSubstr("at most 128"));
}

TEST(TrainJob, RefusesWhatItsSchemaDoesNotTake) {
  const auto refuse = [](auto change) {
    Job job = master_and_workers(2);
    for (Role& role : job.roles) change(role);
    return refusal_of_train_job(job);
  };
  EXPECT_EQ(refuse([](Role& role) { role.image.assign(500, 'i'); }), "not refused");
  EXPECT_THAT(refuse([](Role& role) { role.image.assign(501, 'i'); }), HasSubstr("500 characters"));
  EXPECT_EQ(refuse([](Role& role) { role.command.resize(100, "word"); }), "not refused");
  EXPECT_THAT(refuse([](Role& role) { role.command.resize(129, "word"); }), HasSubstr("128 words"));
  EXPECT_EQ(refuse([](Role& role) { role.command.back().assign(65536, 'w'); }), "not refused");
  EXPECT_THAT(refuse([](Role& role) { role.command.back().assign(65537, 'w'); }),
              HasSubstr("65536 characters"));
}

TEST(TrainJob, WhatAManagedJobAlwaysHasIsNamedAndNotRefused) {
  Job job = master_and_workers(2);
  job.form = JobForm::kTrainingInput;
  job.document = "{}";
  job.success_role = "master";
  job.restarts.most = 3;
  EXPECT_EQ(refusal_of_train_job(job), "not refused");
  EXPECT_THAT(
      fields_unused_by_train_job(job),
      ElementsAre(HasSubstr("restarts"), HasSubstr("the end of master does not end the job")));
  EXPECT_THAT(fields_unused_by_train_job(master_and_workers(2)), IsEmpty());
}

TEST(Manifests, AnEvaluatorIsOutsideTheWorld) {
  Job job = master_and_workers(2);
  job.roles.push_back(role("evaluator", 2));
  job.roles.back().in_world = false;
  const Json container = container_of(job, 2);
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK"}) {
    EXPECT_TRUE(variable(container, name).is_null()) << name;
  }
  EXPECT_EQ(variable(container, "PEAL_ROLE")["value"], "evaluator");
  EXPECT_EQ(container["command"].dump(), R"(["train"])");
  EXPECT_EQ(variable(container_of(job, 0), "WORLD_SIZE")["value"], "3");
}

TEST(Manifests, RanksOfAManagedJobAreNodes) {
  Job job = master_and_workers(2);
  job.form = JobForm::kTrainingInput;
  job.document = "{}";
  EXPECT_TRUE(variable(container_of(job, 0), "LOCAL_RANK").is_null());
  EXPECT_EQ(variable(container_of(job, 1), "CLUSTER_SPEC")["value"],
            "$(PEAL_CLUSTER_SPEC_BEGIN)$(PEAL_ROLE_RANK)$(PEAL_CLUSTER_SPEC_END)");
  EXPECT_THAT(container_of(job, 1)["command"][2], HasSubstr("env -u PEAL_CLUSTER_SPEC_BEGIN"));
}

TEST(Manifests, ACommandThatStartsRanksItselfGetsNodes) {
  Job job = master_and_workers(1);
  EXPECT_EQ(variable(container_of(job, 0), "LOCAL_RANK")["value"], "0");
  job.roles[0].command = {"/opt/peal/bin/peal", "run", "-n", "4", "train"};
  EXPECT_TRUE(variable(container_of(job, 0), "LOCAL_RANK").is_null());
}

TEST(Manifests, AReferenceToAVariableOfTheShellIsRefused) {
  Job job = master_and_workers(2);
  job.form = JobForm::kWorkerPoolSpecs;
  job.document = "{}";
  job.roles[1].args = {"--rank=$(RANK)"};
  EXPECT_THAT(refusal(job), HasSubstr("role \"worker\" refers to $(RANK)"));
}

TEST(Unexpanded, DoublesEachDollar) { EXPECT_EQ(unexpanded("a$(B)$$c$"), "a$$(B)$$$$c$$"); }

}  // namespace
}  // namespace peal::launch::kubernetes
