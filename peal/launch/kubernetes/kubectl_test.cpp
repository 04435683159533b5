#include "peal/launch/kubernetes/kubectl.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch::kubernetes {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Timeout kPatience{20'000};

TEST(Kubectl, ReturnsOutputErrorsAndExitCode) {
  const Kubectl shell({"sh", "-c", "cat; echo problem >&2; exit 3"}, kPatience);
  const std::string input(1'000'000, 'x');
  const Answer answer = shell.run({}, input);
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.out, input);
  EXPECT_EQ(answer.err, "problem\n");
}

TEST(Kubectl, PassesWordsAsTheyAre) {
  const Kubectl print({"printf", "%s|"}, kPatience);
  EXPECT_EQ(print.run({"a b", "", "$HOME", "'\"\n"}).out, "a b||$HOME|'\"\n|");
}

TEST(Kubectl, ThatDoesNotAnswerIsKilled) {
  const Kubectl sleep({"sleep", "1000"}, Timeout(100));
  try {
    sleep.run({});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr("has not answered"));
  }
}

TEST(Kubectl, ThatIsMissingIsNamed) {
  const Kubectl missing({"no-such-kubectl"}, kPatience);
  try {
    missing.run({});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"no-such-kubectl\" was not found: install kubectl"));
  }
}

TEST(Kubectl, CanBeInterrupted) {
  const Kubectl sleep({"sleep", "1000"}, kPatience);
  EXPECT_THROW(sleep.run({}, {}, [] { throw std::runtime_error("Ctrl-C"); }), Interrupted);
}

TEST(Kubectl, StreamsToTheEnd) {
  const Kubectl shell({"sh", "-c"}, kPatience);
  ProgramStream stream = shell.stream({"echo a; echo hidden >&2; echo b; exit 4"});
  std::string text;
  for (std::string bytes = stream.read_some(); !bytes.empty(); bytes = stream.read_some()) {
    text += bytes;
  }
  EXPECT_EQ(text, "a\nb\n");
  EXPECT_EQ(stream.wait(), 4);
}

TEST(Explain, SaysWhatToDo) {
  EXPECT_THAT(explain("start it", "Warning: old\nThe connection to the server x:1 was refused\n"),
              AllOf(HasSubstr("could not start it: kubectl reaches no cluster (The connection"),
                    HasSubstr("KUBECONFIG")));
  EXPECT_THAT(explain("start it", "Error from server (Forbidden): jobs is forbidden: User \"x\"\n"),
              HasSubstr("does not permit it"));
  EXPECT_THAT(explain("start it", "error: You must be logged in to the server (Unauthorized)\n"),
              HasSubstr("log in"));
  EXPECT_THAT(explain("start it", "error: context \"prod\" does not exist\n"),
              HasSubstr("current-context"));
  EXPECT_EQ(explain("start it", "Error: something new\nWarning: later\n"),
            "could not start it: kubectl says: Error: something new");
}

}  // namespace
}  // namespace peal::launch::kubernetes
