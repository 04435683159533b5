// Tests `horovodrun`, and its options in `peal run`, from outside.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/cli/testing/program.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

/// Prints where a rank is.
constexpr const char* kPlace =
    "echo $HOROVOD_RANK/$HOROVOD_SIZE $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE "
    "$HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE $HOROVOD_HOSTNAME "
    "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE";

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Runs `horovodrun ARGUMENTS... sh -c SCRIPT`.
Ended horovodrun(std::vector<std::string> arguments, const std::string& script) {
  arguments.insert(arguments.end(), {"sh", "-c", script});
  return run_horovodrun(arguments);
}

TEST(HorovodrunTest, TwoNamesOfThisMachineAreTwoHosts) {
  const Ended ended = horovodrun({"-np", "2", "-H", "localhost:1,127.0.0.1:1"}, kPlace);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(sorted_lines(ended.out),
              ElementsAre("[0]<stdout>:0/2 0/1 0/2 localhost 0/2 0/1",
                          "[1]<stdout>:1/2 0/1 1/2 127.0.0.1 1/2 0/1"));
}

TEST(HorovodrunTest, WithoutHostsAllRanksAreOnLocalhost) {
  const Ended ended = run_program(shell(2, kPlace));
  EXPECT_THAT(
      sorted_lines(ended.out),
      ElementsAre("[0] 0/2 0/2 0/1 localhost 0/2 0/2", "[1] 1/2 1/2 0/1 localhost 1/2 1/2"));
}

TEST(HorovodrunTest, AHostfileAndTheNameOfThisMachineWork) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  const PrivateFolder folder("peal-test.");
  const std::string file =
      folder.write("hosts", fmt::format("# two hosts\n\n{} slots=2\n[::1]:2\n", name.data()));
  for (const char* const option : {"-hostfile", "--hostfile"}) {
    const Ended ended =
        horovodrun({"-np", "3", option, file}, "echo $HOROVOD_HOSTNAME $LOCAL_RANK");
    EXPECT_THAT(sorted_lines(ended.out),
                ElementsAre(fmt::format("[0]<stdout>:{} 0", name.data()),
                            fmt::format("[1]<stdout>:{} 1", name.data()),
                            "[2]<stdout>:::1 0"))
        << ended.err;
  }
}

TEST(HorovodrunTest, WithoutANumberTheRanksFillAllSlots) {
  EXPECT_EQ(sorted_lines(horovodrun({"-H", "localhost:2,127.0.0.1:1"}, ":; echo").out).size(), 3U);
}

TEST(HorovodrunTest, OptionsBecomeVariables) {
  const Ended ended = horovodrun({"-np",
                                  "1",
                                  "--fusion-threshold-mb=1",
                                  "--timeline-filename",
                                  "t.json",
                                  "-timeline-mark-cycles",
                                  "--no_stall_check",
                                  "--stall-check-shutdown-time-seconds",
                                  "9",
                                  "--autotune",
                                  "--log-level",
                                  "ERROR",
                                  "-x",
                                  "HOROVOD_CACHE_CAPACITY=5",
                                  "--cache-capacity",
                                  "4"},
                                 "env | grep ^HOROVOD_ | sort");
  EXPECT_EQ(ended.err, "");
  for (const char* const variable : {"HOROVOD_FUSION_THRESHOLD=1048576\n",
                                     "HOROVOD_TIMELINE=t.json\n",
                                     "HOROVOD_TIMELINE_MARK_CYCLES=1\n",
                                     "HOROVOD_STALL_CHECK_DISABLE=1\n",
                                     "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=9\n",
                                     "HOROVOD_AUTOTUNE=1\n",
                                     "HOROVOD_LOG_LEVEL=error\n",
                                     "HOROVOD_CACHE_CAPACITY=5\n"}) {
    EXPECT_THAT(ended.out, HasSubstr(variable));
  }
}

TEST(HorovodrunTest, TheOrderOfOptionsAndConfigFileDecides) {
  const PrivateFolder folder("peal-test.");
  const std::string file = folder.write("config.yaml",
                                        "params:\n  cache_capacity: 7\n  speed: 1\n"
                                        "timeline: {filename: config.json}\n");
  const std::string script = "echo $HOROVOD_CACHE_CAPACITY $HOROVOD_TIMELINE";
  const Ended before =
      horovodrun({"-np", "1", "--cache-capacity", "1", "--config-file", file}, script);
  EXPECT_EQ(before.out, "[0]<stdout>:7 config.json\n");
  EXPECT_EQ(
      before.err,
      fmt::format("peal: --config-file {}: params.speed is not known and has no effect\n", file));
  EXPECT_EQ(horovodrun({"-np", "1", "--config-file", file, "--cache-capacity", "1"}, script).out,
            "[0]<stdout>:1 config.json\n");
}

TEST(HorovodrunTest, OutputGoesToAFolderForEachRank) {
  const PrivateFolder folder("peal-test.");
  const std::string logs = folder.path() / "logs";
  const Ended ended = horovodrun({"-np", "2", "--output-filename", logs, "-prefix-timestamp"},
                                 "echo out $RANK; [ $RANK = 0 ] || echo err >&2");
  EXPECT_THAT(ended.out,
              MatchesRegex(".* 20..\\[.\\]<stdout>:out .\n.* 20..\\[.\\]<stdout>:out .\n"));
  EXPECT_THAT(ended.err, MatchesRegex(".* 20..\\[1\\]<stderr>:err\n"));
  EXPECT_EQ(content_of(logs + "/rank.0/stdout"), "out 0\n");
  EXPECT_EQ(content_of(logs + "/rank.1/stdout"), "out 1\n");
  EXPECT_EQ(content_of(logs + "/rank.1/stderr"), "err\n");
}

TEST(HorovodrunTest, OptionsWithoutEffectAreNamedInOneLine) {
  const Ended ended = horovodrun({"-np", "1", "--tcp", "--cycle-time-ms", "5", "--disable-cache"},
                                 "echo $HOROVOD_CYCLE_TIME");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.out, "[0]<stdout>:5\n");
  EXPECT_EQ(sorted_lines(ended.err).size(), 3U) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("peal: --disable-cache has no effect: peal checks the hosts"));
}

TEST(HorovodrunTest, VerboseNamesTheHostsOfTheRanks) {
  const Ended ended = horovodrun({"-np", "3", "-H", "localhost:2,127.0.0.1:2", "--verbose"}, ":");
  EXPECT_EQ(ended.err, "peal: host localhost has ranks 0 to 1\npeal: host 127.0.0.1 has rank 2\n");
}

TEST(HorovodrunTest, TheBuildAndTheVersionAreShownWithoutACommand) {
  for (const char* const option : {"-cb", "--check-build"}) {
    const Ended ended = run_horovodrun({option});
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out,
                AllOf(HasSubstr("Available Frameworks:\n"),
                      HasSubstr("[ ] TensorFlow\n"),
                      HasSubstr("] PyTorch\n"),
                      HasSubstr("[X] Gloo\n"),
                      HasSubstr("[ ] NCCL\n")));
  }
  for (const char* const option : {"-v", "--version"}) {
    EXPECT_THAT(run_horovodrun({option}).out, HasSubstr("0.28.1\n"));
  }
  EXPECT_THAT(run_horovodrun({"--help"}).out,
              AllOf(HasSubstr("--hostfile"),
                    HasSubstr("Elastic jobs"),
                    HasSubstr("--no-stall-check"),
                    Not(HasSubstr("--jsrun"))));
}

TEST(HorovodrunTest, WrongArgumentsAreErrorsThatSayWhatToDo) {
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"-np", "3", "-H", "localhost:2"},
       2,
       "Requested more processes (3) than there are available slots (2)"},
      {{"-np", "1", "-H", "peal-other.invalid:1"},
       1,
       "no rank was started, because 1 of 1 host cannot be used:\n  peal-other.invalid: "},
      {{"-np", "1", "-H", "localhost:x"}, 2, "the number of slots is from 1"},
      {{"-np", "1", "--hostfile", "/no/such/file"}, 2, "--hostfile /no/such/file: cannot be read"},
      {{"-np", "1", "--config-file", "/no/such/file"}, 2, "--config-file /no/such/file: cannot"},
      {{"-np", "1", "-H", "localhost", "--hostfile", "f"}, 2, "both name the hosts"},
      {{"-np", "1", "--mpi"}, 2, "leave out --mpi"},
      {{"-np", "1", "--log-level", "LOUD"}, 2, "--log-level \"LOUD\": it takes TRACE"},
      {{"-np", "1", "--min-np", "2"}, 2, "--min-np 2 is more than -np 1"},
      {{"-np", "1", "--log-dir", "a", "--output-filename", "b"}, 2, "give only one"},
      {{"-np", "1", "-x", "HOROVOD_RANK=3"}, 2, "horovodrun sets HOROVOD_RANK"},
      {{"-np", "1", "--autotune=yes"}, 2, "--autotune takes no value; see horovodrun --help"},
      {{}, 2, "how many ranks? Use -np, as in: horovodrun -np 2 ./train"},
      {{"-np", "0"}, 2, "cannot start 0 ranks: -np takes the number of ranks, 1 or more"},
      {{"-np", "100000000"}, 2, "cannot start 100000000 ranks: -np takes the number of ranks, at"},
      {{"--frobnicate"}, 2, "there is no option --frobnicate; see horovodrun --help"},
      {{"-hostfil", "f"}, 2, "there is no option -hostfil; did you mean --hostfile?"},
      {{"--gloo-timeout", "3"}, 2, "did you mean --gloo-timeout-seconds?"},
      {{"-np", "1", "-H", "a b"}, 2, "-H: \"a b\": it is not the name of a host"},
      {{"-np", "1", "--grace", "x"}, 2, "--grace \"x\": it takes seconds from 0 to 86400"},
      {{"--output-filename", "--verbose"}, 2, "needs a value (DIR), but --verbose follows"},
      {{"--blacklist-cooldown-range", "5", "--tcp"}, 2, "needs 2 values (MIN MAX), but --tcp"},
      {{"--min-np", "1", "--inject", "f"}, 2, "--inject has no effect in an elastic job"},
      {{"--min-np", "3", "--max-np", "2"}, 2, "--min-np 3 is more than --max-np 2"},
      {{"--min-np", "1", "--host-discovery-script", "/no/such/script"},
       2,
       "the discovery script \"/no/such/script\" ended with exit code 127: "},
      {{"--min-np", "1", "--host-discovery-script", "echo no luck >&2; exit 5"},
       2,
       "ended with exit code 5: no luck"},
      {{"--min-np", "1", "--host-discovery-script", "echo one two"},
       2,
       "\"echo one two\" printed no list of hosts: line 1, \"one two\": a line has the form"},
      {{"--min-np", "1", "--host-discovery-script", "echo peal-other.invalid:1"},
       1,
       "host peal-other.invalid cannot be used: "},
      {{"-np", "2:1"},
       2,
       "-np \"2:1\": it takes the least and the most ranks of an elastic job, in this order, as in "
       "2:4; 2 is more than 1"},
      {{"-np", "1-2"}, 2, "-np \"1-2\": it takes the least and the most ranks of an elastic job"},
      {{"-np", "1,2"}, 2, "in this order, as in 2:4"},
      {{"-np", "0:2"}, 2, "in this order, as in 2:4"},
      {{"-np", "1:"}, 2, "in this order, as in 2:4"},
      {{"-np", "1:2", "--min-np", "1"}, 2, "-np 1:2 and --min-np both say how many ranks"},
      {{"-np", "2", "--nnodes", "2:1"},
       2,
       "--nnodes \"2:1\": it takes the least and the most nodes"},
      {{"-np", "2", "--nnodes", "2:1", "-H", "localhost"},
       2,
       "nodes of an elastic job, in this order, as in 2:4"},
      {{"-np", "2", "--nnodes", "1-2", "-H", "localhost"},
       2,
       "nodes of an elastic job, in this order, as in 2:4"},
      {{"-np", "2", "--nnodes", "1:2"}, 2, "--nnodes 1:2: one launcher starts the ranks of all"},
      {{"-np", "1:2", "--nnodes", "1:2"}, 2, "--nnodes 1:2 and -np 1:2 both have a range"},
      {{"--nodes", "1:2", "-H", "localhost"}, 2, "--nnodes 1:2: how many ranks on each host?"},
  };
  for (const Case& wrong : cases) {
    const Ended ended = horovodrun(wrong.arguments, "echo started");
    EXPECT_EQ(ended.status, wrong.status) << wrong.message << ended.err;
    EXPECT_EQ(ended.out, "") << wrong.message;
    EXPECT_THAT(ended.err, HasSubstr(wrong.message));
  }
}

TEST(HorovodrunTest, TheHelpAndTheErrorsHaveTheNameThatTheUserTyped) {
  EXPECT_THAT(run_horovodrun({"--help"}).out,
              AllOf(HasSubstr("Usage: horovodrun [OPTIONS] COMMAND"),
                    HasSubstr("  horovodrun -np 2 ./train"),
                    Not(HasSubstr("  peal run -n"))));
  EXPECT_THAT(
      run_program({"run", "--help"}).out,
      AllOf(HasSubstr("Usage: peal run [OPTIONS] COMMAND"), HasSubstr("  peal run -n 2 ./train")));
  EXPECT_EQ(run_horovodrun({"-np"}).err,
            "peal: -np needs a value (RANKS); see horovodrun --help\n");
  EXPECT_EQ(run_horovodrun({"ls", "-np", "2"}).err,
            "peal: how many ranks? All words after the command belong to it; did you mean: "
            "horovodrun -np 2 ls\n");
}

TEST(HorovodrunTest, AnElasticJobHasAFolderOfLogsForEachWorker) {
  const PrivateFolder folder("peal-test.");
  const std::string logs = folder.path() / "logs";
  const Ended ended = horovodrun({"-np", "1", "--min-np", "1", "--output-filename", logs},
                                 "echo out; echo err >&2");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, StartsWith("localhost[0]<stderr>:err\n"));
  EXPECT_EQ(content_of(logs + "/localhost-0/stdout"), "out\n");
  EXPECT_EQ(content_of(logs + "/localhost-0/stderr"), "err\n");
}

TEST(HorovodrunTest, AWrongValueInAConfigFileNamesTheFile) {
  const PrivateFolder folder("peal-test.");
  const std::string file = folder.write("config.yaml", "params: {cache_capacity: many}\n");
  EXPECT_EQ(horovodrun({"-np", "1", "--config-file", file}, "echo started").err,
            fmt::format("peal: --config-file {}: params.cache_capacity \"many\": it takes a whole "
                        "number, 0 or more\n",
                        file));
}

TEST(HorovodrunTest, AnElasticJobRunsOnFixedHosts) {
  const Ended here = horovodrun({"-np", "2", "--min-np", "1"}, "echo $HOROVOD_HOSTNAME");
  EXPECT_EQ(here.status, 0) << here.err;
  EXPECT_THAT(here.out, HasSubstr("localhost\n"));
  const Ended named = horovodrun({"--min-np", "1", "-H", "127.0.0.1:1"}, "echo $HOROVOD_HOSTNAME");
  EXPECT_EQ(named.status, 0) << named.err;
  EXPECT_EQ(named.out, "127.0.0.1[0]<stdout>:127.0.0.1\n");
}

/// Runs an elastic job that ends when this number of workers has started. Returns their slots.
std::set<std::string> workers_of(const std::vector<std::string>& arguments, int count) {
  const PrivateFolder folder("peal-test.");
  const auto started = folder.path() / "started";
  std::filesystem::create_directory(started);
  const Ended ended =
      horovodrun(arguments,
                 fmt::format("touch {0}/$HOROVOD_HOSTNAME-$HOROVOD_LOCAL_RANK; "
                             "until [ $(ls {0} | wc -l) -ge {1} ]; do sleep 0.05; done",
                             started.string(),
                             count));
  EXPECT_EQ(ended.status, 0) << ended.err;
  std::set<std::string> workers;
  for (const auto& entry : std::filesystem::directory_iterator(started)) {
    workers.insert(entry.path().filename());
  }
  return workers;
}

TEST(HorovodrunTest, ARangeOfRanksMakesAnElasticJob) {
  for (const char* const option : {"-np", "--np", "-n", "--num-proc"}) {
    EXPECT_THAT(workers_of({option, "1:2"}, 2), ElementsAre("localhost-0", "localhost-1"))
        << option;
  }
}

TEST(HorovodrunTest, ARangeOfNodesMakesAnElasticJobWithRanksOnEachHost) {
  EXPECT_THAT(workers_of({"--nnodes", "1:2", "-np", "2", "-H", "localhost,127.0.0.1,127.0.0.2"}, 4),
              ElementsAre("127.0.0.1-0", "127.0.0.1-1", "localhost-0", "localhost-1"));
}

TEST(HorovodrunTest, TwoValuesOfAnOptionAreNotTakenForTheCommand) {
  const Ended ended =
      horovodrun({"--blacklist-cooldown-range", "5", "60", "--num-proc", "1"}, "echo started");
  EXPECT_EQ(ended.out, "[0]<stdout>:started\n");
  EXPECT_THAT(ended.err, HasSubstr("--blacklist-cooldown-range has no effect without"));
}

TEST(HorovodrunTest, ALaunchInsideARankHasItsOwnPlace) {
  const Ended ended = horovodrun(
      {"-np", "2", "-H", "localhost:1,127.0.0.1:1", "--no-prefix"},
      fmt::format("[ $RANK = 0 ] || {} run -n 1 --no-prefix sh -c '{}'", PEAL_PROGRAM, kPlace));
  EXPECT_EQ(ended.out, "0/1 0/1 0/1 localhost 0/1 0/1\n") << ended.err;
}

TEST(HorovodrunTest, TheCommandIsBesideTheProgram) {
  const auto place = std::filesystem::path(PEAL_PROGRAM).parent_path() / "horovodrun";
  EXPECT_TRUE(std::filesystem::equivalent(place, PEAL_PROGRAM));
}

}  // namespace
}  // namespace peal::cli
