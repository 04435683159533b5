// Tests the arguments of `peal` and `peal run` from outside: what they mean, and the errors of
// wrong ones.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/cli/testing/program.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(RunArgumentsTest, AllSpellingsOfTheNumberOfRanksWork) {
  for (const std::vector<std::string>& ways : {std::vector<std::string>{"-n", "2"},
                                               {"-np", "2"},
                                               {"-n2"},
                                               {"-n=2"},
                                               {"-np=2"},
                                               {"--nproc-per-node", "2"},
                                               {"--nproc_per_node=2"}}) {
    std::vector<std::string> arguments = {"run"};
    arguments.insert(arguments.end(), ways.begin(), ways.end());
    arguments.insert(arguments.end(), {"sh", "-c", "echo $RANK/$WORLD_SIZE"});
    EXPECT_THAT(sorted_lines(run_program(arguments).out), ElementsAre("[0] 0/2", "[1] 1/2"))
        << ways.front();
  }
}

TEST(RunArgumentsTest, AllWordsAfterTheCommandBelongToTheCommand) {
  EXPECT_EQ(run_program({"run", "-n", "1", "echo", "-n", "3", "--help", "--", "-np"}).out,
            "[0] 3 --help -- -np\n");
  EXPECT_EQ(run_program({"run", "-n", "1", "--", "echo", "--", "x"}).out, "[0] -- x\n");
  EXPECT_EQ(run_program({"run", "--no-prefix", "-n", "1", "echo", "run"}).out, "run\n");
}

TEST(RunArgumentsTest, WrongArgumentsAreErrorsThatSayWhatToDo) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "peal run -n 2 ./train\nSee peal --help"},
      {{"fly"},
       "there is no command \"fly\", only run, submit, status, logs, cancel, jobs, bench, "
       "why, schedule and config"},
      {{"./prog", "5"}, "peal run -n 2 ./prog 5\n"},
      {{"rn", "-n", "2", "ls"}, "did you mean run?"},
      {{"conf"}, "did you mean config?"},
      {{"-n", "2", "ls"}, "-n belongs to run: peal run -n 2 ls\n"},
      {{"-n2", "ls"}, "-n2 belongs to run: peal run -n2 ls\n"},
      {{"--nproc_per_node=2", "ls"}, "--nproc_per_node=2 belongs to run"},
      {{"--verison"}, "there is no option --verison"},
      {{"-nice", "ls"}, "there is no option -nice"},
      {{"--nproc-foo", "2"}, "there is no option --nproc-foo"},
      {{"run", "ls"}, "-n"},
      {{"run", "ls", "-n", "2"}, "did you mean: peal run -n 2 ls\n"},
      {{"run", "ls", "-l", "-np=2"}, "did you mean: peal run -n 2 ls\n"},
      {{"run", "head", "-n"}, "peal run -n 2 ./train\n"},
      {{"run", "-n", "2", "-np", "3", "ls"}, "-n is given 2 times, with 2 and 3"},
      {{"run", "-n", "2"}, "no command"},
      {{"run", "-n"}, "peal run --help"},
      {{"run", "-n", "0", "ls"}, "1 or more"},
      {{"run", "-n", "-3", "ls"}, "1 or more"},
      {{"run", "-n", "two", "ls"}, "-n \"two\": it takes the number of ranks"},
      {{"run", "-n", "./prog"}, "-n \"./prog\": it takes the number of ranks"},
      {{"run", "-n", "99999999999", "ls"}, "it takes the number of ranks"},
      {{"run", "--fast", "-n", "2", "ls"}, "--fast"},
      {{"run", "-n", "1", "--bind", "sockets", "ls"}, "cores or none"},
      {{"run", "-n", "1", "--grace", "-1", "ls"}, "--grace"},
      {{"run", "-n", "1", "--grace", "1e300", "ls"}, "it takes seconds from 0 to 86400"},
      {{"run", "-n", "1", "--grace", "nan", "ls"}, "it takes seconds from 0 to 86400"},
      {{"run", "-n", "1", "--launcher", "pdsh", "ls"}, "it must be ssh, slurm or mpi"},
      {{"run", "-n", "1", "--launcher", "slrum", "ls"}, "ssh, slurm or mpi; did you mean slurm?"},
      {{"run", "-n", "1", "--launcher", "mpi", "ls"}, "--launcher mpi needs hosts"},
      {{"run", "-n", "1", "--launcher", "slurm", "ls"}, "neither a batch script of Slurm"},
      {{"run", "-n", "1", "--launcher", "slurm", "-H", "a", "ls"}, "neither a batch script"},
      {{"run", "-n", "1", "--launcher", "mpi", "-H", "a", "-p", "22", "ls"},
       "--ssh-port is an option of ssh, and mpirun starts these ranks"},
      {{"run", "-n", "1", "-x", "=1", "ls"}, "NAME=VALUE"},
      {{"run", "-n", "1", "-x", "PEAL_NOT_SET_ANYWHERE", "ls"}, "not set"},
      {{"run", "-n", "1", "-x", "WORLD_SIZE=4", "ls"}, "peal run sets WORLD_SIZE"},
  };
  for (const Case& wrong : cases) {
    const Ended ended = run_program(wrong.arguments);
    EXPECT_EQ(ended.status, 2) << wrong.message;
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, HasSubstr(wrong.message));
  }
}

TEST(RunArgumentsTest, ACommandThatCannotRunGivesOneErrorAndTheCodeOfAShell) {
  const Ended missing = run_program({"run", "-n", "3", "peal-no-such-command"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(sorted_lines(missing.err).size(), 1u);
  EXPECT_THAT(missing.err, HasSubstr("peal-no-such-command"));
  const Ended quoted = run_program({"run", "-n", "3", "echo hi"});
  EXPECT_EQ(quoted.status, 127);
  EXPECT_EQ(sorted_lines(quoted.err).size(), 1u);
  EXPECT_THAT(quoted.err, HasSubstr("leave out the quotes, as in: echo hi;"));
  EXPECT_EQ(run_program({"run", "-n", "3", "/etc/passwd"}).status, 126);
  EXPECT_EQ(run_program({"run", "-n", "3", "/etc"}).status, 126);
}

TEST(RunArgumentsTest, HelpAndVersionArePrinted) {
  const Ended help = run_program({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("Examples:"), HasSubstr("--log-dir"), HasSubstr("-np")));
  EXPECT_THAT(run_program({"--help"}).out, AllOf(HasSubstr("run"), HasSubstr("config")));
  EXPECT_THAT(run_program({"--version"}).out, HasSubstr("peal "));
}

TEST(RunArgumentsTest, OptionsOfMpirunAreKnown) {
  for (const char* const option : {"--tag-output", "--oversubscribe", "--allow-run-as-root"}) {
    EXPECT_EQ(run_program(shell(1, ":", {option})).status, 0) << option;
  }
  for (const char* const binding : {"core", "none"}) {
    EXPECT_EQ(run_program(shell(1, ":", {"-bind-to", binding})).status, 0) << binding;
  }
  const Ended here = run_program(shell(2, "echo $LOCAL_RANK", {"-host", "localhost:2"}));
  EXPECT_EQ(here.status, 0) << here.err;
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--bind-to", "socket"}, "--bind \"socket\": it takes cores or none"},
      {{"--map-by", "node"}, "--map-by is an option of mpirun: ranks fill the hosts"},
      {{"--rank-by", "slot"}, "--rank-by is an option of mpirun: the ranks of a host"},
      {{"-N", "2"}, "-N is an option of mpirun: give the slots of each host"},
      {{"--npernode", "2"}, "-N is an option of mpirun: give the slots of each host"},
      {{"-ppn", "2"}, "-N is an option of mpirun: give the slots of each host"},
      {{"--mca", "btl"}, "--mca is an option of mpirun: the ranks connect without Open MPI"},
      {{"--nodes", "2", "-H", "a,b"}, "leave out --nodes, and give the ranks of each host"},
      {{"-wdir", "/tmp"}, "--wdir is an option of mpirun: ranks start in the current folder"},
  };
  for (const auto& [options, text] : refused) {
    const Ended ended = run_program(shell(1, ":", options));
    EXPECT_EQ(ended.status, 2) << options.front();
    EXPECT_THAT(ended.err, HasSubstr(text));
  }
  const Ended several = run_program({"run", "-np", "1", "true", ":", "-np", "1", "true"});
  EXPECT_EQ(several.status, 2);
  EXPECT_THAT(several.err, HasSubstr("`:` begins another program for mpirun"));
  EXPECT_EQ(run_program({"run", "-np", "1", "true", ":"}).status, 0) << "an argument";
}

TEST(RunArgumentsTest, TheGraceHasTwoNames) {
  const Ended ended = run_program(shell(1, ":", {"--grace-period", "x"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("--grace"));
}

TEST(RunInjectTest, EachFaultIsAnnouncedAndPassedToAllRanks) {
  const PrivateFolder folder("peal-test.");
  const std::string path =
      folder.write("faults", "rank 1 kill at operation 10  # a comment\nlink 0>1 delay 20ms\n");
  const Ended ended = run_program(
      shell(2, "echo $PEAL_INJECT", {"--inject", path, "-x", "PEAL_TRANSPORT=tcp", "--no-prefix"}));
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(
      ended.err,
      "peal: injects: rank 1 kill at operation 10\n"
      "peal: injects: link 0>1 delay 20 ms\n"
      "peal: this fault did not happen: rank 1 kill at operation 10; rank 1 ended before it\n");
  const std::string all = "rank 1 kill at operation 10; link 0>1 delay 20 ms\n";
  EXPECT_EQ(ended.out, all + all);
}

TEST(RunInjectTest, FaultsFromTheEnvironmentAreAnnounced) {
  const std::string plan = "rank 0 freeze at operation 1";
  EXPECT_EQ(run_program(shell(1, ":", {"-x", "PEAL_INJECT=" + plan})).err,
            "peal: injects: " + plan + "\n");
}

TEST(RunInjectTest, AFaultThatKilledItsRankIsReported) {
  for (const char* const script : {"kill -9 $$", "sh -c 'kill -9 $$'; exit $?"}) {
    const Ended ended =
        run_program(shell(1, script, {"-x", "PEAL_INJECT=rank 0 kill at operation 1"}));
    EXPECT_THAT(
        ended.err,
        AllOf(HasSubstr("peal: the injected fault killed rank 0: rank 0 kill at operation 1\n"),
              Not(HasSubstr("did not happen"))))
        << script;
  }
}

TEST(RunInjectTest, AWrongPlanIsAnErrorBeforeAnyRankStarts) {
  struct Case {
    const char* text;
    const char* problem;
  };
  for (const auto& [text, problem] :
       {Case{"\nrank 1 jump at operation 10\n", "/faults: line 2, \"rank 1 jump at operation 10\""},
        Case{"# nothing\n", "the file contains no faults"},
        Case{"rank 2 kill at operation 1", "there is no rank 2 in a job of 2"},
        Case{"link 0-1 delay 1 s", "add -x PEAL_TRANSPORT=tcp"}}) {
    const PrivateFolder folder("peal-test.");
    const Ended ended =
        run_program(shell(2, "echo started", {"--inject", folder.write("faults", text)}));
    EXPECT_EQ(ended.status, 2) << text;
    EXPECT_EQ(ended.out, "") << text;
    EXPECT_THAT(ended.err, HasSubstr(problem));
  }
  const Ended ended = run_program(shell(2, "echo started", {"--inject", "/no/such/file"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("--inject /no/such/file: cannot be read: No such file"));
}

}  // namespace
}  // namespace peal::cli
