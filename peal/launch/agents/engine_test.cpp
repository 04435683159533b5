#include "peal/launch/agents/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

int exited(int code) { return code << 8; }

EngineOptions ssh() { return {.engine = Engine::kSsh, .peal = "/opt/peal/bin/peal"}; }

TEST(EngineTest, SshGetsOnlyOptionsThatAddToTheUsersConfiguration) {
  EngineOptions options = ssh();
  options.options = {"-p", "2222"};
  EXPECT_THAT(agent_command(options, "user@node1"),
              ElementsAre("ssh",
                          "-T",
                          "-o",
                          "BatchMode=yes",
                          "-p",
                          "2222",
                          "--",
                          "user@node1",
                          "exec '/opt/peal/bin/peal' agent"));
}

TEST(EngineTest, APathIsQuotedForTheShellOfTheHost) {
  EngineOptions options = ssh();
  options.peal = "/it's here/peal";
  EXPECT_EQ(agent_command(options, "n").back(), R"(exec '/it'\''s here/peal' agent)");
}

TEST(EngineTest, SlurmStartsOneAgentOnTheNodeBesideOtherSteps) {
  const auto command = agent_command({.engine = Engine::kSlurm, .peal = "/p"}, "n2");
  EXPECT_EQ(command.front(), "srun");
  EXPECT_THAT(command, testing::IsSupersetOf({"--nodelist=n2", "--nodes=1", "--overlap"}));
  EXPECT_EQ(command[command.size() - 2], "/p");
  EXPECT_EQ(command.back(), "agent");
}

TEST(EngineTest, AProblemSaysWhatToDoAndQuotesTheEngine) {
  struct Case {
    int status;
    std::string output;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {exited(255),
       "root@n: Permission denied (publickey).\r\n",
       "it accepts no key of yours; copy one there with ssh-copy-id, or load it with ssh-add "
       "(root@n: Permission denied (publickey).)"},
      {exited(255), "Host key verification failed.\r\n", "its key is not known here"},
      {exited(255),
       "ssh: connect to host n port 22: Connection refused\r\n",
       "no ssh server listens"},
      {exited(255),
       "ssh: Could not resolve hostname n: Name or service not known\r\n",
       "no address"},
      {exited(1),
       "ssh: Could not resolve hostname n: Name or service not known\nORTE was unable to start.\n",
       "its spelling (ssh: Could not resolve hostname n: Name or service not known)"},
      {exited(127), "bash: line 1: /opt/peal/bin/peal: No such file or directory\n", "--peal-path"},
      {exited(126), "", "/opt/peal/bin/peal is not executable there"},
      {exited(127),
       "peal: error while loading shared libraries: libfmt.so.9: cannot open shared object file",
       "ssh ended with exit code 127: peal: error while loading shared libraries: libfmt.so.9"},
      {9, "", "ssh was killed by SIGKILL"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(start_problem(ssh(), each.status, each.output), HasSubstr(each.problem));
  }
}

TEST(EngineTest, SshInsideMpirunSaysThatNoAgentWillAnswer) {
  const std::string refused = "mpiexec: hint\nroot@n: Permission denied (publickey).\r\n";
  EXPECT_THAT(problem_before_the_end(Engine::kMpi, refused),
              HasSubstr("it accepts no key of yours"));
  EXPECT_THAT(problem_before_the_end(Engine::kMpi, "ssh: connect to host n: No route to host\r\n"),
              HasSubstr("the network has no way to it"));
  EXPECT_EQ(problem_before_the_end(Engine::kMpi, "ssh: connect to host n: Protocol error\r\n"),
            "ssh: connect to host n: Protocol error");
  EXPECT_EQ(problem_before_the_end(Engine::kMpi, "sh: /etc/profile: Permission denied\n"), "");
  EXPECT_EQ(problem_before_the_end(Engine::kSsh, refused), "") << "ssh ends by itself";
}

TEST(EngineTest, OpenMpi5IsRefusedBecauseItLosesInput) {
  EXPECT_THAT(mpirun_problem("mpirun (Open MPI) 5.0.11\n\nReport bugs to ...\n"),
              HasSubstr("loses"));
  EXPECT_EQ(mpirun_problem("mpirun (Open MPI) 4.1.4\n"), "");
  EXPECT_EQ(mpirun_problem("HYDRA build details:\n    Version: 5.0.0\n"), "");
  EXPECT_EQ(mpirun_problem(""), "");
}

}  // namespace
}  // namespace peal::launch::agents
