// Ranks that the kernel kills because memory runs out.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/launch/launcher.h"
#include "peal/system/cgroups.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;
using Path = std::filesystem::path;

constexpr Bytes kLimit = 32_MiB;

bool write_to(const Path& file, const std::string& text) {
  return static_cast<bool>(std::ofstream(file) << text << std::flush);
}

/// While it lives, this process and the processes that it starts are in a cgroup of their own, with
/// a memory limit. For version 1 of cgroups, and without sanitizers.
class LimitedMemory {
 public:
  LimitedMemory() {
    if (kSanitized) return;  // this process itself would need more memory
    for (const Path& group : cgroups_of("memory")) {
      if (std::filesystem::exists(group / "memory.limit_in_bytes")) {
        before_ = group;
        break;
      }
    }
    if (before_.empty()) return;
    own_ = before_ / fmt::format("peal-test-{}", ::getpid());
    std::error_code ignored;
    std::filesystem::create_directory(own_, ignored);
    is_set_ = write_to(own_ / "memory.limit_in_bytes", std::to_string(kLimit.value)) &&
              write_to(own_ / "cgroup.procs", std::to_string(::getpid()));
  }
  ~LimitedMemory() {
    if (is_set_) write_to(before_ / "cgroup.procs", std::to_string(::getpid()));
    if (!own_.empty()) ::rmdir(own_.c_str());
  }
  LimitedMemory(const LimitedMemory&) = delete;

  bool is_set() const { return is_set_; }

 private:
  Path before_;
  Path own_;
  bool is_set_ = false;
};

LaunchReport launch_shell(const std::string& script) {
  LaunchOptions options;
  options.command = {"sh", "-c", script};
  options.ranks = 2;
  const auto ranks = plan_ranks(options,
                                JobContext{.id = "test", .secret = Secret("hush"), .port = 4711},
                                "/bin/sh",
                                divide_cores(usable_cores(), options.ranks),
                                process_variables());
  SignalReader signals;
  return run(options, ranks, {STDOUT_FILENO}, {STDERR_FILENO}, signals);
}

TEST(OutOfMemoryTest, ARankThatTheKernelKillsForItsMemoryIsReported) {
  const LimitedMemory limited;
  if (!limited.is_set())
    GTEST_SKIP() << "this process cannot make a memory cgroup of version 1, or is sanitized";
  const LaunchReport report = launch_shell("test $RANK = 0 && exec sleep 100; exec tail /dev/zero");
  const ProcessEnd* const main = main_failure(report);
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->rank, 1);
  EXPECT_EQ(main->out_of_memory, OutOfMemory{kLimit});
  EXPECT_THAT(describe(report),
              HasSubstr("was killed by SIGKILL: out of memory (limit 32.0 MiB of its cgroup)"));
}

TEST(OutOfMemoryTest, ASigkillOfAnotherProcessIsNotOutOfMemory) {
  const LimitedMemory limited;  // or not: the test works without it
  const LaunchReport report = launch_shell("test $RANK = 0 && exec sleep 100; kill -KILL $$");
  const ProcessEnd* const main = main_failure(report);
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->out_of_memory, std::nullopt);
  EXPECT_THAT(describe(report), HasSubstr("was killed by SIGKILL (not by the launcher;"));
}

}  // namespace
}  // namespace peal::launch
