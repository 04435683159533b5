#include "peal/launch/containers/container_ends.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::containers {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;

constexpr const char* kMissing = "No such file or directory";

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

TEST(ContainerEnds, TheTextNamesTheImageAndTheCommand) {
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

TEST(ContainerEnds, TheTextAboutMemoryNamesTheLimit) {
  EXPECT_THAT(text_of_memory(Evidence::kEngine, 64_MiB), HasSubstr("container, 67108864 bytes"));
  EXPECT_THAT(text_of_memory(Evidence::kLimit, 64_MiB), HasSubstr("(probably)"));
  EXPECT_THAT(text_of_memory(Evidence::kEngine, Bytes(0)), Not(HasSubstr("limit")));
}

}  // namespace
}  // namespace peal::launch::containers
