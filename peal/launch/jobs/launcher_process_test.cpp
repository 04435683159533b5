#include "peal/launch/jobs/launcher_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/idle_child.h"

namespace peal::launch::jobs {
namespace {

const Machine kHere = {
    .host = "node1", .machine_id = "m1", .boot_id = "b1", .pid_namespace = "pid:[1]"};
const LauncherProcess kLauncherHere = {.machine = kHere, .pid = 12, .start_time = 700};

Liveness seen_from(const Machine& here, std::optional<std::uint64_t> start_time) {
  return liveness_of(kLauncherHere, here, [&](std::int64_t pid) {
    EXPECT_EQ(pid, 12);
    return start_time;
  });
}

Machine here_but(void (*change)(Machine&)) {
  Machine machine = kHere;
  change(machine);
  return machine;
}

TEST(LauncherProcessTest, OnTheSameMachineTheStartTimeDecides) {
  EXPECT_EQ(seen_from(kHere, 700), Liveness::kAlive);
  EXPECT_EQ(seen_from(kHere, 701), Liveness::kGone);  // another process has its number
  EXPECT_EQ(seen_from(kHere, std::nullopt), Liveness::kGone);
}

TEST(LauncherProcessTest, AfterAnotherStartOfTheMachineTheLauncherIsGone) {
  const Machine restarted = here_but([](Machine& machine) { machine.boot_id = "b2"; });
  EXPECT_EQ(seen_from(restarted, 700), Liveness::kGone);
}

TEST(LauncherProcessTest, OnOtherMachinesAndInOtherContainersTheLauncherIsNotVisible) {
  const auto other_machine = here_but([](Machine& machine) {
    machine.boot_id = "b2";
    machine.host = "node2";
  });
  const auto same_name = here_but([](Machine& machine) {
    machine.boot_id = "b2";
    machine.machine_id = "m2";
  });
  const auto container = here_but([](Machine& machine) { machine.pid_namespace = "pid:[2]"; });
  const auto no_proc = here_but([](Machine& machine) { machine.pid_namespace.clear(); });
  const auto no_boot = here_but([](Machine& machine) { machine.boot_id.clear(); });
  for (const Machine& here : {other_machine, same_name, container, no_proc, no_boot}) {
    EXPECT_EQ(seen_from(here, 700), Liveness::kNotVisible) << here.host;
  }
}

TEST(LauncherProcessTest, AnotherNameOfTheMachineHidesNoProcess) {
  const auto renamed = here_but([](Machine& machine) { machine.host = "node1.example.org"; });
  EXPECT_EQ(seen_from(renamed, 700), Liveness::kAlive);
}

TEST(LauncherProcessTest, AKilledProcessIsGoneEvenBeforeItIsReaped) {
  IdleChild child;
  const LauncherProcess record = process_record(child.pid());
  EXPECT_EQ(liveness_of(record), Liveness::kAlive);
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_EQ(liveness_of(record), Liveness::kGone);
  child.end();
  EXPECT_EQ(liveness_of(record), Liveness::kGone);
}

TEST(LauncherProcessTest, ARecordNamesTheProcessAndItsMachine) {
  const LauncherProcess own = this_process();
  EXPECT_EQ(own.pid, ::getpid());
  EXPECT_EQ(own.machine, this_machine());
  EXPECT_FALSE(own.machine.boot_id.empty());
  EXPECT_FALSE(own.machine.pid_namespace.empty());
  EXPECT_EQ(liveness_of(own), Liveness::kAlive);
  EXPECT_EQ(error_of([] { process_record(0); }).kind(), ErrorKind::kResource);
  EXPECT_EQ(describe(kLauncherHere), "its launcher (pid 12 on node1)");
}

}  // namespace
}  // namespace peal::launch::jobs
