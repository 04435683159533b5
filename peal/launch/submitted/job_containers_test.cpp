#include "peal/launch/submitted/job_containers.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::submitted {
namespace {

const std::vector<Core> kFourCpus = {{{0, 1}}, {{2, 3}}};

Role role_in(const std::string& image, const Resources& resources = {}) {
  return {.name = "a", .image = image, .command = {"p"}, .resources = resources};
}

TEST(JobContainersTest, SomeOrAllRolesHaveAnImage) {
  const auto are_there = [](const std::vector<Role>& roles) {
    const Job job{.name = "j", .roles = roles};
    return std::pair(has_containers(job), runs_only_in_containers(job));
  };
  EXPECT_EQ(are_there({role_in("")}), std::pair(false, false));
  EXPECT_EQ(are_there({role_in(""), role_in("x")}), std::pair(true, false));
  EXPECT_EQ(are_there({role_in("x")}), std::pair(true, true));
}

TEST(JobContainersTest, RanksOfANodeShareItsCoresAndItsMemory) {
  Role role = role_in("x", {.cpus = 3, .memory = Bytes(4000), .gpus = 1, .shm = Bytes(500)});
  role.ranks_per_node = 2;
  const Job job{.name = "j",
                .roles = {role},
                .directory = "/app",
                .labels = {{"team", "red"}},
                .engine_options = {{"container", {"--volume=/d:/d"}}, {"local", {"--other"}}}};
  const containers::Container expected{.image = "x",
                                       .directory = "/app",
                                       .memory = Bytes(2000),
                                       .cpus = 1.5,
                                       .shm = Bytes(500),
                                       .has_gpus = true,
                                       .attempt = 2,
                                       .labels = {{"team", "red"}},
                                       .options = {"--volume=/d:/d"}};
  EXPECT_EQ(container_of(job, role, 2, kFourCpus), expected);
}

TEST(JobContainersTest, TheEntrypointOfTheImageIsKeptWithoutACommand) {
  Role role = role_in("x");
  EXPECT_EQ(container_of({}, role, 0, {}).entrypoint, containers::Entrypoint::kReplaced);
  role.command.clear();
  EXPECT_EQ(container_of({}, role, 0, {}).entrypoint, containers::Entrypoint::kKept);
}

TEST(JobContainersTest, MoreCpusThanTheHostHasAreNoLimitAndAreSaid) {
  const Job job{.name = "j", .roles = {role_in("x", {.cpus = 4.5}), role_in("", {.cpus = 9})}};
  EXPECT_EQ(container_of(job, job.roles[0], 0, kFourCpus).cpus, std::nullopt);
  EXPECT_EQ(missing_cpus(job, "h", kFourCpus),
            "h has 4 CPUs, and a node of the role a asks for 4.5: their containers have no limit "
            "of CPUs");
  const std::vector<Core> five = {{{0}}, {{1}}, {{2}}, {{3}}, {{4}}};
  EXPECT_EQ(container_of(job, job.roles[0], 0, five).cpus, 4.5);
  EXPECT_EQ(missing_cpus(job, "h", five), "");
  EXPECT_EQ(missing_cpus(job, "h", {}), "");  // the cores are not known
}

}  // namespace
}  // namespace peal::launch::submitted
