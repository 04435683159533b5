#include "peal/launch/containers/container_ends.h"

#include <signal.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::containers {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr const char* kMissing = "No such file or directory";

constexpr int kExited1 = 1 << 8;

ProcessEnd end_with(const std::vector<std::string>& lines, int status = kExited1) {
  std::vector<ProcessEnd> ends = {{.rank = 0, .status = status, .last_lines = lines}};
  take_sentences(ends);
  return ends.front();
}

TEST(ContainerEnds, TheLineOfAnInitTellsWhyItCannotExecuteTheCommand) {
  const std::string catatonit = "ERROR (catatonit:6): failed to exec pid1: ";
  EXPECT_THAT(failure_of_init(1, catatonit + kMissing), Optional(std::string(kMissing)));
  EXPECT_THAT(failure_of_init(1, catatonit + "Permission denied\r"),
              Optional(std::string("Permission denied")));
  const std::string tini = "[FATAL tini (7)] exec a failed: b failed: ";
  EXPECT_THAT(failure_of_init(127, tini + kMissing), Optional(std::string(kMissing)));
  EXPECT_THAT(failure_of_init(126, tini + "Permission denied"),
              Optional(std::string("Permission denied")));
}

TEST(ContainerEnds, AProgramThatWritesSuchALineOrEndsWithSuchACodeHasStarted) {
  EXPECT_EQ(failure_of_init(127, ""), std::nullopt);
  EXPECT_EQ(failure_of_init(1, kMissing), std::nullopt);
  EXPECT_EQ(failure_of_init(3, "ERROR (catatonit:6): failed to exec pid1: x"), std::nullopt);
  EXPECT_EQ(failure_of_init(1, "ERROR (catatonit:6): failed to forward a signal"), std::nullopt);
  EXPECT_EQ(failure_of_init(3, "[FATAL tini (7)] exec a failed: x"), std::nullopt);
}

TEST(ContainerEnds, TheCodesAreThoseOfAShell) {
  EXPECT_EQ(code_of_failure(kMissing), 127);
  EXPECT_EQ(code_of_failure("Permission denied"), 126);
}

TEST(ContainerEnds, TheTextNamesTheImageAndTheCommandAndTheLauncherFindsIt) {
  const std::string missing = text_of_failed_command("c", {"img", "/app/train"}, kMissing);
  EXPECT_THAT(missing, HasSubstr("the image img lacks the command /app/train, or"));
  EXPECT_THAT(missing, HasSubstr("--volume=FOLDER:FOLDER"));
  EXPECT_THAT(text_of_failed_command("c", {"img", ""}, kMissing),
              HasSubstr("the image img lacks its own command, or"));
  const std::string denied = text_of_failed_command("c", {"img", "a"}, "Permission denied");
  EXPECT_THAT(denied, HasSubstr("the image img cannot execute the command a: Permission denied."));
  const std::string failed = text_of_failed_engine("c", {"img", "a"}, 125, "");
  EXPECT_THAT(failed, HasSubstr("the engine's exit code is 125"));
  EXPECT_THAT(text_of_failed_engine("c", {"img", "a"}, 127, ""), HasSubstr("lacks the command a"));
  for (const std::string& text : {missing, denied, failed}) {
    EXPECT_EQ(end_with({"above", "peal: " + text}).container_start, ContainerStart::kFailed);
    EXPECT_EQ(end_with({"[0] peal: " + text}).container_start, ContainerStart::kDone);
  }
  EXPECT_EQ(end_with({"peal: " + text_of_interrupted_start("c", 137)}).container_start,
            ContainerStart::kInterrupted);
}

TEST(ContainerEnds, AContainerWithGpusThatCannotStartTellsWhatTheHostLacks) {
  const std::string podman = "Error: unresolvable CDI devices nvidia.com/gpu=all";
  const std::string none = hint_about_gpus(false, podman);
  EXPECT_THAT(none, HasSubstr("this host has no GPU"));
  EXPECT_THAT(hint_about_gpus(true, podman), HasSubstr("Container Toolkit"));
  EXPECT_EQ(hint_about_gpus(true, "Error: statfs /nope: no such file or directory"), "");
  EXPECT_THAT(text_of_failed_engine("c", {"img", "a"}, 126, none),
              HasSubstr("126, and its message is above. The job asks for GPUs, and this host"));
}

TEST(ContainerEnds, TheLauncherFindsThatMemoryRanOutAndTheLimit) {
  for (const Evidence evidence : {Evidence::kEngine, Evidence::kLimit}) {
    const std::string line = "peal: " + text_of_memory(evidence, 64_MiB);
    EXPECT_EQ(end_with({line}, SIGKILL).out_of_memory, OutOfMemory{64_MiB});
    EXPECT_EQ(end_with({line}, SIGSEGV).out_of_memory, std::nullopt);
    EXPECT_EQ(end_with({line}, kExited1).out_of_memory, std::nullopt);
  }
  const std::string of_machine = "peal: " + text_of_memory(Evidence::kEngine, Bytes(0));
  EXPECT_EQ(end_with({of_machine}, SIGKILL).out_of_memory, OutOfMemory{});
  EXPECT_EQ(end_with({"out of memory"}, SIGKILL).out_of_memory, std::nullopt);
}

}  // namespace
}  // namespace peal::launch::containers
