#include "peal/launch/containers/container_command.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/launch/containers/engine_client.h"

namespace peal::launch::containers {
namespace {

constexpr const char* kPodman = "/usr/bin/podman";
constexpr const char* kDocker = "/usr/bin/docker";

RankCommand rank_3() {
  return {.rank = 3,
          .program = "train",
          .arguments = {"train", "--epochs", "5"},
          .environment = {{"PEAL_JOB", "j/1"}, {"RANK", "3"}, {"PEAL_SECRET", "the secret"}},
          .cpus = {2, 3},
          .host = "node1"};
}

bool has(const RankCommand& command, const std::string& word) {
  return std::ranges::count(command.arguments, word) == 1;
}

TEST(ContainerCommand, TheCommandReplacesTheEntrypointUnlessItIsKept) {
  Container container{.image = "image"};
  const RankCommand replaced = in_container(rank_3(), container, kPodman, {});
  EXPECT_TRUE(has(replaced, "--entrypoint=train"));
  EXPECT_EQ(std::vector(replaced.arguments.end() - 3, replaced.arguments.end()),
            (std::vector<std::string>{"image", "--epochs", "5"}));
  container.entrypoint = Entrypoint::kKept;
  const RankCommand kept = in_container(rank_3(), container, kPodman, {});
  EXPECT_EQ(std::vector(kept.arguments.end() - 4, kept.arguments.end()),
            (std::vector<std::string>{"image", "train", "--epochs", "5"}));
}

TEST(ContainerCommand, ValuesOfVariablesAreInTheEnvironmentAndNotInTheArguments) {
  RankCommand rank = rank_3();
  rank.environment["HOSTILE"] = " a,'b'\n$HOME\" ";
  rank.environment["PATH"] = "/of/the/job";
  const RankCommand command = in_container(rank, {.image = "image"}, kPodman, {{"PATH", "/bin"}});
  EXPECT_TRUE(has(command, "--env=HOSTILE"));
  EXPECT_EQ(command.environment.at("HOSTILE"), " a,'b'\n$HOME\" ");
  for (const std::string& word : command.arguments) {
    EXPECT_EQ(word.find("secret "), std::string::npos) << word;
    EXPECT_EQ(word.find("$HOME"), std::string::npos) << word;
    EXPECT_EQ(word.find("/of/the/job"), std::string::npos) << word;
  }
}

TEST(ContainerCommand, TheEngineKeepsItsOwnVariablesAndTheRankGetsThoseOfTheJob) {
  RankCommand rank = rank_3();
  rank.environment["PATH"] = "/of/the/job";
  rank.environment["LD_LIBRARY_PATH"] = "/lib of the job";
  const RankCommand command =
      in_container(rank, {.image = "image"}, kPodman, {{"PATH", "/bin"}, {"HOME", "/root"}});
  EXPECT_EQ(command.environment.at("PATH"), "/bin");
  EXPECT_FALSE(command.environment.contains("LD_LIBRARY_PATH"));
  EXPECT_EQ(command.environment.at(kFileVariable),
            "LD_LIBRARY_PATH=/lib of the job\nPATH=/of/the/job\n");
  EXPECT_FALSE(has(command, "--env=HOME"));
}

TEST(ContainerCommand, AVariableOfTheEngineWithSeveralLinesIsRejected) {
  RankCommand rank = rank_3();
  rank.environment["LD_PRELOAD"] = "a\nPATH=/bad";
  EXPECT_THROW(in_container(rank, {.image = "image"}, kPodman, {}), Error);
}

TEST(ContainerCommand, TheSecretIsNotAVariableOfTheContainer) {
  const RankCommand command =
      in_container(rank_3(), {.image = "image"}, kPodman, {{"PEAL_SECRET", "of the host"}});
  EXPECT_FALSE(has(command, "--env=PEAL_SECRET"));
  EXPECT_TRUE(has(command, "--env=PEAL_SECRET_FILE=/run/peal-secret"));
  EXPECT_EQ(command.environment.at("PEAL_SECRET"), "the secret");
}

TEST(ContainerCommand, WithoutASecretNoFileIsNamed) {
  RankCommand rank = rank_3();
  rank.environment.erase("PEAL_SECRET");
  const RankCommand command =
      in_container(rank, {.image = "image"}, kPodman, {{"PEAL_SECRET", "of the host"}});
  EXPECT_FALSE(has(command, "--env=PEAL_SECRET_FILE=/run/peal-secret"));
  EXPECT_FALSE(command.environment.contains("PEAL_SECRET"));
}

TEST(ContainerCommand, NamesOfAttemptsAndRanksDifferAndHaveLegalCharacters) {
  Container container{.image = "image"};
  EXPECT_EQ(container_name(rank_3(), container), "peal-j_1-0-3");
  container.attempt = 2;
  EXPECT_EQ(container_name(rank_3(), container), "peal-j_1-2-3");
}

TEST(ContainerCommand, SharedMemoryIsHalfOfTheLimitUnlessItIsGiven) {
  Container container{.image = "image", .memory = 64_MiB};
  const RankCommand half = in_container(rank_3(), container, kPodman, {});
  EXPECT_TRUE(has(half, "--memory=67108864b"));
  EXPECT_TRUE(has(half, "--shm-size=33554432b"));
  container.shm = 1_MiB;
  EXPECT_TRUE(has(in_container(rank_3(), container, kPodman, {}), "--shm-size=1048576b"));
}

TEST(ContainerCommand, EnginesDifferInCpusAndGpus) {
  const Container container{.image = "image", .has_gpus = true};
  const RankCommand podman = in_container(rank_3(), container, kPodman, {});
  EXPECT_TRUE(has(podman, "--device=nvidia.com/gpu=all"));
  EXPECT_FALSE(has(podman, "--cpuset-cpus=2,3"));
  const RankCommand docker = in_container(rank_3(), container, kDocker, {});
  EXPECT_TRUE(has(docker, "--gpus=all"));
  EXPECT_TRUE(has(docker, "--cpuset-cpus=2,3"));
  EXPECT_FALSE(has(docker, "--http-proxy=false"));
}

TEST(ContainerCommand, ALabelNamesTheJob) {
  Container container{.image = "image", .labels = {{"team", "vision"}}};
  const RankCommand run = in_container(rank_3(), container, kPodman, {});
  EXPECT_TRUE(has(run, "--label=team=vision"));
  EXPECT_TRUE(has(run, "--label=peal.rank=3"));
  EXPECT_TRUE(has(run, "--label=peal.job=j/1"));
  container.labels[kJobLabel] = "mnist-4kq7xz";
  const RankCommand submitted = in_container(rank_3(), container, kPodman, {});
  EXPECT_TRUE(has(submitted, "--label=peal.job=mnist-4kq7xz"));
  EXPECT_FALSE(has(submitted, "--label=peal.job=j/1"));
}

TEST(ContainerCommand, TheProcessOfTheRankGetsTheEngineTheNameAndTheImageBeforeTheCommand) {
  const RankCommand command = in_container(rank_3(), {.image = "image"}, kPodman, {});
  EXPECT_EQ(std::vector(command.arguments.begin(), command.arguments.begin() + 6),
            (std::vector<std::string>{"peal", kRankWord, kPodman, "peal-j_1-0-3", "image", "run"}));
}

TEST(ContainerCommand, TheCommandAfterTheEndNamesTheSameContainer) {
  const RankCommand command = in_container(rank_3(), {.image = "image"}, kPodman, {});
  EXPECT_TRUE(has(command, "--name=peal-j_1-0-3"));
  EXPECT_EQ(command.after_end,
            (std::vector<std::string>{kOwnProgram, kEndWord, kPodman, "peal-j_1-0-3"}));
  EXPECT_EQ(command.host, "node1");
  EXPECT_EQ(command.cpus, (std::vector<int>{2, 3}));
}

TEST(ContainerCommand, TheRecordsAreOnTheHost) {
  RankCommand rank = rank_3();
  rank.environment["PEAL_FLIGHT_DIR"] = "/tmp/records";
  EXPECT_TRUE(has(in_container(rank, {.image = "image"}, kPodman, {}),
                  "--volume=/tmp/records:/tmp/records:z"));
}

TEST(ContainerCommand, OnlyVariablesOfTheJobAreInherited) {
  const Variables host = {{"PATH", "a"}, {"HOME", "b"}, {"PEAL_TIMEOUT", "5"}, {"OMP_PLACES", "c"}};
  EXPECT_EQ(inherited_in_container(host), (Variables{{"PEAL_TIMEOUT", "5"}, {"OMP_PLACES", "c"}}));
}

}  // namespace
}  // namespace peal::launch::containers
