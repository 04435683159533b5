#include "peal/launch/containers/engine_client.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"
#include "peal/system/process_state.h"
#include "peal/system/text_file.h"

namespace peal::launch::containers {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A program that stands for an engine: a shell script, whose first argument is the command.
class EngineClientTest : public testing::Test {
 protected:
  std::string engine(const std::string& name, const std::string& script) const {
    const std::string path = folder_.write(name, "#!/bin/sh\n" + script);
    ::chmod(path.c_str(), 0700);
    return path;
  }

 private:
  const PrivateFolder folder_{"peal-engine-client-test."};
};

constexpr const char* kNoDaemon =
    "echo 'Cannot connect to the Docker daemon. Is the docker daemon running?' >&2; exit 1";

TEST_F(EngineClientTest, ADaemonThatDoesNotRunIsNamedBeforeAnyImage) {
  const std::string docker = engine("docker", kNoDaemon);
  const FoundEngine found = find_engine(docker, {"first", "second"}, {});
  EXPECT_EQ(found.engine, "");
  EXPECT_THAT(found.problem, StartsWith("the daemon of " + docker + " does not answer: Cannot "));
  EXPECT_THAT(found.problem, Not(HasSubstr("first")));
  EXPECT_THAT(found.problem, HasSubstr("PEAL_CONTAINER_ENGINE"));
}

TEST_F(EngineClientTest, AnEngineThatFailsIsNamedBeforeAnyImage) {
  const std::string podman = engine("podman", "echo 'no storage' >&2; exit 125");
  EXPECT_EQ(find_engine(podman, {"first"}, {}).problem,
            podman + " does not work on this host: no storage");
}

TEST_F(EngineClientTest, AllImagesThatCannotBePulledAreNamed) {
  const std::string docker =
      engine("docker", "[ $1 = ps ] && exit 0; [ $1 = pull ] && echo denied >&2; exit 1");
  EXPECT_EQ(find_engine(docker, {"first", "second"}, {}).problem,
            "the image \"first\" is not here, and " + docker +
                " cannot pull it: denied; the image \"second\" is not here, and " + docker +
                " cannot pull it: denied");
}

TEST_F(EngineClientTest, AMissingImageIsPulledAndReported) {
  const std::string docker = engine("docker", "[ $1 != image ]");
  const FoundEngine found = find_engine(docker, {"first"}, {});
  EXPECT_EQ(found.engine, docker);
  EXPECT_EQ(found.notice, "the image first was missing, and was pulled");
}

TEST_F(EngineClientTest, AnImageThatIsThereNeedsNoOtherCommand) {
  const std::string docker = engine("docker", "[ $1 = image ]");
  const FoundEngine found = find_engine(docker, {"first"}, {});
  EXPECT_EQ(found.engine, docker);
  EXPECT_EQ(found.problem + found.notice, "");
}

TEST_F(EngineClientTest, AnInterruptEndsAPullAndItsChildren) {
  const PrivateFolder folder("peal-engine-client-pull.");
  const std::string pid = folder.path() / "pid";
  const std::string docker =
      engine("docker",
             "[ $1 = ps ] && exit 0; [ $1 = pull ] || exit 1; sleep 1000 & echo $! > " + pid +
                 ".new; mv " + pid + ".new " + pid + "; wait");
  const auto when_it_pulls = [&] {
    if (std::filesystem::exists(pid)) throw Error(ErrorKind::kAborted, "enough");
  };
  EXPECT_THROW(find_engine(docker, {"first"}, {{"PATH", "/usr/bin:/bin"}}, when_it_pulls),
               Interrupted);
  const int child = std::stoi(read_text_file(pid));
  const auto has_ended = [&] {
    const ProcessState state = state_of_process(child);
    return state == ProcessState::kMissing || state == ProcessState::kZombie;
  };
  while (!has_ended()) std::this_thread::sleep_for(kInterruptEvery);
}

}  // namespace
}  // namespace peal::launch::containers
