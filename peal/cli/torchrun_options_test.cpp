// Tests the options of torchrun, and the variables of launchers that start nodes, from outside: a
// `peal run` that is one node of several.
#include <stdlib.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/cli/testing/program.h"
#include "peal/launch/cores.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Sets variables of this process for the programs that it starts.
class WithVariables final {
 public:
  explicit WithVariables(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~WithVariables() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  WithVariables(const WithVariables&) = delete;

 private:
  std::vector<std::string> names_;
};

constexpr const char* kShowPlace =
    "echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node $GROUP_RANK/$GROUP_WORLD_SIZE "
    "at $MASTER_ADDR:$MASTER_PORT ${PEAL_SECRET-none}";

const std::map<std::string, std::string> kManagedService = {
    {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "2222"}};

TEST(NodeTest, TheOptionsOfTorchrunMakeThisANode) {
  const Ended ended = run_program(shell(
      2, kShowPlace, {"--nnodes=2", "--node_rank", "1", "--master-addr", "m", "--master_port=5"}));
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(sorted_lines(ended.out),
              ElementsAre("[2] 2/4 local 0/2 node 1/2 at m:5 none",
                          "[3] 3/4 local 1/2 node 1/2 at m:5 none"));
  EXPECT_EQ(ended.err,
            "peal: node 1 of 2 (--nnodes 2): ranks 2 to 3 of 4; the ranks meet at m:5\n");
  const Ended ipv6 = run_program(shell(
      1, "", {"--nnodes=2", "--node-rank=1", "--master-addr=2001:db8::1", "--master-port=5"}));
  EXPECT_THAT(ipv6.err, HasSubstr("; the ranks meet at [2001:db8::1]:5\n"));
  const Ended endpoint = run_program(shell(1,
                                           kShowPlace,
                                           {"--nnodes=2:2",
                                            "--node-rank=0",
                                            "--rdzv-backend=c10d",
                                            "--rdzv-endpoint=m:6",
                                            "--rdzv-id=7"}));
  EXPECT_EQ(endpoint.out, "[0] 0/2 local 0/1 node 0/2 at m:6 none\n");
}

TEST(NodeTest, TheVariablesOfAManagedServiceMakeThisANode) {
  const WithVariables variables(kManagedService);
  const Ended ended = run_program(shell(2, kShowPlace));
  EXPECT_THAT(sorted_lines(ended.out),
              ElementsAre("[2] 2/6 local 0/2 node 1/3 at m:2222 none",
                          "[3] 3/6 local 1/2 node 1/3 at m:2222 none"));
  EXPECT_THAT(run_program(shell(1, kShowPlace)).out, HasSubstr("[1] 1/3 local 0/1"));
  EXPECT_THAT(run_program(shell(1, kShowPlace, {"--standalone"})).out,
              AllOf(HasSubstr("[0] 0/1 local 0/1 node 0/1 at 127.0.0.1:"), Not(HasSubstr("none"))));
  EXPECT_THAT(run_program(shell(2, kShowPlace, {"-H", "localhost:2"})).out,
              HasSubstr("[1] 1/2 local 1/2 node 0/1 at 127.0.0.1:"));
}

TEST(NodeTest, AJobInsideARankOfANodeIsAJobOfItsOwn) {
  const WithVariables variables(kManagedService);
  const std::string inner = fmt::format(
      "{} run -n 1 --no-prefix sh -c 'echo $RANK of $WORLD_SIZE at $MASTER_ADDR'", PEAL_PROGRAM);
  const Ended ended = run_program(shell(1, inner));
  EXPECT_EQ(ended.out, "[1] 0 of 1 at 127.0.0.1\n");
}

TEST(NodeTest, TheSecretAndTheJobOfTheUserAreKept) {
  auto all = kManagedService;
  all["PEAL_SECRET"] = "sixteen letters!";
  all["PEAL_JOB"] = "mine";
  const WithVariables variables(all);
  EXPECT_EQ(run_program(shell(1, "echo $PEAL_SECRET $PEAL_JOB")).out,
            "[1] sixteen letters! mine\n");
}

TEST(NodeTest, TheNumberOfRanksMayBeAWordOrAVariable) {
  const auto cores = launch::usable_cores().size();
  const WithVariables no_gpus({{"CUDA_VISIBLE_DEVICES", ""}, {"PET_NPROC_PER_NODE", "3"}});
  const auto ranks = [](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"run"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"sh", "-c", "echo"});
    return sorted_lines(run_program(arguments).out).size();
  };
  EXPECT_EQ(ranks({}), 3u);
  EXPECT_EQ(ranks({"--nproc-per-node=auto"}), cores);
  EXPECT_EQ(ranks({"--nproc_per_node", "cpu"}), cores);
  EXPECT_THAT(run_program({"run", "-n", "gpu", "true"}).err, HasSubstr("-n gpu: this machine has"));
  const WithVariables gpus(std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "0,3,5"}});
  EXPECT_EQ(ranks({"--nproc-per-node=gpu"}), 3u);
}

TEST(NodeTest, RedirectedOutputIsOnlyLogged) {
  const PrivateFolder logs("peal-test.");
  const std::string script = "echo out $RANK; echo err $RANK >&2";
  const Ended ended =
      run_program(shell(2, script, {"--log-dir", logs.path(), "-r", "0:1,1:3", "-t", "1:2"}));
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(sorted_lines(ended.err), ElementsAre("[0] err 0", "[1] err 1"));
  std::ifstream log(logs.path() / "rank-1.out");
  std::string line;
  std::getline(log, line);
  EXPECT_EQ(line, "out 1");
  EXPECT_THAT(sorted_lines(run_program(shell(3, script, {"--local-ranks-filter", "0,2"})).out),
              ElementsAre("[0] out 0", "[2] out 2"));
}

TEST(NodeTest, AModuleRunsInPython) {
  const Ended ended = run_program({"run", "-n", "1", "-m", "json.tool", "--help"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("json.tool"));
  EXPECT_EQ(run_program({"run", "--no-python", "-n", "1", "echo", "-m"}).out, "[0] -m\n");
}

TEST(NodeTest, OptionsWithoutEffectAreNamedOnce) {
  EXPECT_EQ(run_program(shell(1, ":", {"--max-restarts", "0"})).err, "");
  EXPECT_THAT(run_program(shell(1, ":", {"--role", "trainer"})).err,
              HasSubstr("peal: --role has no effect"));
}

TEST(NodeTest, AJobThatFailsStartsAgainAsOftenAsAllowed) {
  const std::string script =
      "echo attempt $PEAL_ATTEMPT of rank $RANK; [ $PEAL_ATTEMPT = 2 ] || [ $RANK = 1 ] || exit 7";
  const Ended ended = run_program(shell(2, script, {"--max_restarts=2"}));
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(sorted_lines(ended.out),
              ElementsAre("[0] attempt 0 of rank 0",
                          "[0] attempt 1 of rank 0",
                          "[0] attempt 2 of rank 0",
                          "[1] attempt 0 of rank 1",
                          "[1] attempt 1 of rank 1",
                          "[1] attempt 2 of rank 1"));
  EXPECT_THAT(ended.err, HasSubstr("ended with exit code 7"));
  EXPECT_THAT(ended.err, HasSubstr("peal: restart 2 of 2\n"));
  EXPECT_EQ(run_program(shell(1, "exit 7", {"--max-restarts", "1"})).status, 7);
}

TEST(NodeTest, AMistakeInTheCommandIsNotRepeated) {
  const Ended ended = run_program({"run", "-n", "1", "--max-restarts", "3", "no-such-program"});
  EXPECT_EQ(ended.status, 127);
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("restart")));
}

TEST(NodeTest, WrongOptionsAndVariablesAreErrorsBeforeAnyRankStarts) {
  struct Case {
    std::vector<std::string> options;
    std::map<std::string, std::string> variables;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--nnodes", "1:4"}, {}, "--nnodes 1:4: one launcher starts the ranks of all hosts"},
      {{"--nnodes", "two"}, {}, "--nnodes \"two\": it takes the number of nodes"},
      {{"--nnodes", "2"}, {}, "--nnodes 2: which of the nodes is this? Give --node-rank, 0 to 1"},
      {{"--nnodes", "2", "--node-rank", "0"}, {}, "give --master-addr"},
      {{"--node-rank", "-1"}, {}, "--node-rank \"-1\": it takes a whole number"},
      {{"--master-port", "0"}, {}, "--master-port \"0\": it takes a port"},
      {{"--rdzv-backend", "etcd"}, {}, "--rdzv-backend \"etcd\": the ranks meet at a port"},
      {{"--rdzv-endpoint", "a:1", "--master-addr", "b"}, {}, "name different places"},
      {{"--standalone", "--nnodes", "2"}, {}, "--standalone means this machine only"},
      {{"--redirects", "3"}, {}, "give --log-dir"},
      {{"--redirects", "4"}, {}, "--redirects \"4\": it takes 0, 1 (stdout)"},
      {{"--tee", "2:1"}, {}, "--tee \"2:1\": the local ranks go from 0 to 1"},
      {{"--local-ranks-filter", "2"}, {}, "it takes local ranks from 0 to 1"},
      {{"-m", "--no-python"}, {}, "give only one of them"},
      {{"--virtual-local-rank"}, {}, "there is no option --virtual-local-rank"},
      {{}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "set MASTER_ADDR"},
      {{}, {{"WORLD_SIZE", "2"}}, "RANK is not: set RANK"},
      {{"-H", "localhost:2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "m"},
       {},
       "leave the hosts out"},
      {{"--min-np", "1"}, kManagedService, "one launcher starts all ranks of an elastic job"},
      {{"--min-np", "1", "--redirects", "3"}, {}, "--redirects selects local ranks"},
  };
  for (const Case& wrong : cases) {
    const WithVariables variables(wrong.variables);
    const Ended ended = run_program(shell(2, "echo started", wrong.options));
    EXPECT_EQ(ended.status, 2) << wrong.message;
    EXPECT_EQ(ended.out, "") << wrong.message;
    EXPECT_THAT(ended.err, HasSubstr(wrong.message));
  }
}

}  // namespace
}  // namespace peal::cli
