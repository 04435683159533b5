// Tests peal's own form of job files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Job read_peal(std::string_view text) { return read_job(text, "jobs/mnist.yaml").job; }

std::string form_problem(std::string_view text) {
  return usage_error_of([&] { read_job(text, "job.yaml"); });
}

/// The problem of a job whose only role has this line.
std::string problem_of_role(const std::string& line) {
  return form_problem("roles:\n- name: a\n  command: x\n  " + line + "\n");
}

TEST(PealFormTest, AJobNeedsOneRoleWithACommand) {
  const Job job = read_peal("roles:\n  - name: trainer\n    command: [python3, train.py]\n");
  EXPECT_EQ(
      job,
      (Job{.name = "mnist", .roles = {{.name = "trainer", .command = {"python3", "train.py"}}}}));
}

TEST(PealFormTest, AllFieldsAreRead) {
  using namespace std::chrono_literals;
  const Job job = read_peal(R"(
name: all
roles:
  - name: trainer
    nodes: 2:4
    ranks_per_node: 8
    image: torch:2.1
    command: ./train
    args: [--lr, 1e-3, "yes"]
    env: {OMP_NUM_THREADS: 4, EMPTY: ""}
    resources: {cpus: 7.5, memory: 15G, gpus: 8, shm: 512M}
  - name: evaluator
    command: [./evaluate]
    in_world: false
env:
  A: b c
directory: /srv/train
files:
  - train.py
  - {from: /data/x, to: x}
success_role: trainer
spare_nodes: 1
restarts: {most: 3, first_pause: 500ms, longest_pause: 2m}
max_run_time: 2h
warn_before: 5m
start_timeout: 90s
grace: 10s
priority: -5
labels: {team: vision}
engine_options:
  slurm: [--partition=gpu, --qos=high]
)");
  Job wanted{
      .name = "all",
      .roles = {{.name = "trainer",
                 .nodes = {2, 4},
                 .ranks_per_node = 8,
                 .image = "torch:2.1",
                 .command = {"./train"},
                 .args = {"--lr", "1e-3", "yes"},
                 .env = {{"EMPTY", ""}, {"OMP_NUM_THREADS", "4"}},
                 .resources = {.cpus = 7.5, .memory = 15 * 1024_MiB, .gpus = 8, .shm = 512_MiB}},
                {.name = "evaluator", .command = {"./evaluate"}, .in_world = false}},
      .env = {{"A", "b c"}},
      .directory = "/srv/train",
      .files = {{"train.py", "train.py"}, {"/data/x", "x"}},
      .success_role = "trainer",
      .spare_nodes = 1,
      .restarts = {.most = 3, .first_pause = 500ms, .longest_pause = 120s},
      .max_run_time = 2h,
      .warn_before = std::chrono::minutes(5),
      .start_timeout = 90s,
      .grace = 10s,
      .priority = -5,
      .labels = {{"team", "vision"}},
      .engine_options = {{"slurm", {"--partition=gpu", "--qos=high"}}}};
  EXPECT_EQ(job, wanted);
}

TEST(PealFormTest, JsonIsReadTheSameWay) {
  EXPECT_EQ(read_peal(R"({"name": "j", "roles": [{"name": "a", "nodes": 2, "command": ["x"]}]})"),
            read_peal("name: j\nroles:\n- {name: a, nodes: 2, command: x}\n"));
}

TEST(PealFormTest, AnUnknownFieldIsNamedWithTheNearestLegalOne) {
  EXPECT_EQ(problem_of_role("node: 2"),
            "job.yaml:4:3: roles[0].node: there is no such field; did you mean nodes?");
  EXPECT_EQ(form_problem("roles: []\n"), "job.yaml:1:8: roles: a job needs a role");
  EXPECT_EQ(form_problem("roles:\n- nam: a\n  command: x y\n"),
            "job.yaml:2:3: roles[0].nam: there is no such field; did you mean name?");
  EXPECT_EQ(form_problem("roles:\n- {name: a, command: x}\nsucess_role: a\n"),
            "job.yaml:3:1: sucess_role: there is no such field; did you mean success_role?");
  EXPECT_THAT(problem_of_role("zzzzzzzzz: 2"),
              HasSubstr("there is no such field, only name, nodes"));
  EXPECT_THAT(form_problem("training_input: {}\n"), HasSubstr("training_input"));
}

TEST(PealFormTest, AWrongTypeIsAnErrorThatSaysWhatTheFieldTakes) {
  EXPECT_EQ(problem_of_role("nodes: two"),
            "job.yaml:4:10: roles[0].nodes: \"two\" is not a whole number from 1 to 32768");
  EXPECT_EQ(problem_of_role("nodes: [2]"),
            "job.yaml:4:10: roles[0].nodes: it takes one value, not a list");
  EXPECT_EQ(problem_of_role("image: \"\""),
            "job.yaml:4:10: roles[0].image: it takes a text that is not empty");
  EXPECT_THAT(problem_of_role("args: -v"), HasSubstr("it takes a list, as in [a, b], not \"-v\""));
  EXPECT_THAT(problem_of_role("env: [A]"), HasSubstr("it takes names with values"));
  EXPECT_THAT(problem_of_role("resources: 4"), HasSubstr("it takes fields with values"));
  EXPECT_THAT(problem_of_role("resources: {cpus: many}"),
              HasSubstr("not a number such as 4 or 0.5"));
  EXPECT_THAT(problem_of_role("resources: {memory: 15 gigs}"), HasSubstr("is not a size"));
  EXPECT_THAT(problem_of_role("in_world: 1"), HasSubstr("is not true or false"));
  EXPECT_THAT(form_problem("roles: x"), HasSubstr("it takes a list"));
  EXPECT_THAT(form_problem("x"), HasSubstr("a job file has fields with values"));
}

TEST(PealFormTest, NumbersThatReadersOfYamlDisagreeAboutAreRefused) {
  EXPECT_THAT(problem_of_role("nodes: 010"), HasSubstr("010 begins with 0"));
  EXPECT_THAT(problem_of_role("nodes: 1e3"), HasSubstr("\"1e3\" is not a whole number"));
  EXPECT_THAT(problem_of_role("nodes: 1_000"), HasSubstr("is not a whole number"));
  EXPECT_THAT(problem_of_role("nodes: 2.0"), HasSubstr("is not a whole number"));
  EXPECT_THAT(problem_of_role("nodes: 4:"), HasSubstr("job.yaml:4:"));
  EXPECT_THAT(problem_of_role("nodes: 1:x"), HasSubstr("\"x\" is not a whole number"));
  EXPECT_THAT(problem_of_role("resources: {cpus: 1e3}"), HasSubstr("is not a number such as"));
  EXPECT_THAT(problem_of_role("resources: {cpus: nan}"), HasSubstr("is not a number such as"));
}

TEST(PealFormTest, WordsThatMayBeTrueOrFalseNeedQuotes) {
  for (const std::string word : {"on", "No", "YES", "true", "off"}) {
    EXPECT_THAT(problem_of_role("env: {A: " + word + "}"),
                AllOf(StartsWith("job.yaml:4:12: roles[0].env.A: "),
                      HasSubstr("quote it: \"" + word + "\"")));
    EXPECT_EQ(read_peal("roles: [{name: a, command: x, env: {A: \"" + word + "\"}}]")
                  .roles[0]
                  .env.at("A"),
              word);
  }
  EXPECT_THAT(problem_of_role("env: {A: }"),
              HasSubstr("it has no value; for an empty text write \"\""));
}

TEST(PealFormTest, ACommandIsAListOrOneWord) {
  EXPECT_EQ(read_peal("roles: [{name: a, command: ./x}]").roles[0].command,
            (std::vector<std::string>{"./x"}));
  EXPECT_THAT(form_problem("roles: [{name: a, command: python3 x.py}]"),
              HasSubstr("\"python3 x.py\" has spaces, and no shell splits it; write a list"));
  EXPECT_EQ(read_peal("roles: [{name: a, command: [\"my program\"]}]").roles[0].command,
            (std::vector<std::string>{"my program"}));
}

TEST(PealFormTest, DurationsHaveUnits) {
  EXPECT_EQ(read_peal("roles: [{name: a, command: x}]\nmax_run_time: 7200s\n").max_run_time,
            std::chrono::hours(2));
  EXPECT_THAT(form_problem("roles: [{name: a, command: x}]\nmax_run_time: 7200\n"),
              HasSubstr("\"7200\" is not a duration: it has no unit, as in 90s"));
  EXPECT_THAT(form_problem("roles: [{name: a, command: x}]\nmax_run_time: 500ms\n"),
              HasSubstr("is not a whole number of seconds"));
}

TEST(PealFormTest, RestartsAreANumberOrFields) {
  EXPECT_EQ(read_peal("roles: [{name: a, command: x}]\nrestarts: 2\n").restarts,
            (Restarts{.most = 2}));
}

TEST(PealFormTest, ErrorsOfTheWholeJobHaveThePlaceOfTheField) {
  EXPECT_THAT(form_problem("name: n\nroles:\n- name: a b\n  command: x\n"),
              StartsWith("job.yaml:3:9: roles[0].name: \"a b\" is not legal"));
  EXPECT_THAT(form_problem("roles: [{name: a, command: x}]\nenv:\n  RANK: 1\n"),
              StartsWith("job.yaml:3:9: env.RANK: peal sets this variable"));
  EXPECT_THAT(form_problem("roles: [{name: a}]\n"),
              StartsWith("job.yaml:1:9: roles[0]: it needs a command"));
  EXPECT_THAT(problem_of_role("nodes: 4:1"),
              HasSubstr("job.yaml:4:10: roles[0].nodes: 4:1 has more"));
  EXPECT_THAT(form_problem("name: x\n"), StartsWith("job.yaml:1:1: a job needs roles:"));
  EXPECT_THAT(form_problem("roles: [{name: a, command: x}]\nengine_options: {slrum: []}\n"),
              HasSubstr("did you mean slurm?"));
}

TEST(PealFormTest, AnAbsoluteFileNeedsAPlaceOnTheNode) {
  EXPECT_THAT(form_problem("roles: [{name: a, command: x}]\nfiles: [/data/x]\n"),
              StartsWith("job.yaml:2:9: files[0]: an absolute path needs a place"));
}

}  // namespace
}  // namespace peal::launch
