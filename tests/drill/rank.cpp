// One rank of a drill: a program that meets, works and leaves. One of the ranks, the target, kills
// or freezes itself at any instruction. The output, for drill.cpp:
//   ready            the rank waits until all ranks have started
//   dying NS         by the target, at its last moment; NS is the time of the system's steady clock
//   ended NS WHAT    an error has ended the rank
//   again WHAT       the error of the next call
//   wrong WHAT       an operation gave a wrong result
//   at N             the rank has completed N operations; printed now and then
//   left             the rank has left the group without an error
// Arguments: those of drill.h's `rank_arguments`.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/init/init.h"

#include "tests/collectives/cases.h"
#include "tests/drill/drill.h"
#include "tests/support/processes.h"

namespace {

using namespace peal;
using namespace peal::testing;

/// Writes the line in one piece and without buffering, because the process may end at any moment.
void say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
}

std::int64_t now() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

/// Kills or freezes this process (the strike) from a separate thread, so that the strike can hit
/// any place in the code. No strike comes while the process exits. The process may then hold locks
/// that do not belong to peal, such as the lock on a coverage build's counter file, for which all
/// ranks wait.
class Strike {
 public:
  explicit Strike(const Drill& drill, Rank self)
      : drill_(drill), is_target_(drill.target == self) {}
  ~Strike() {
    over_ = true;
    if (striker_.joinable()) striker_.join();
  }
  Strike(const Strike&) = delete;
  Strike& operator=(const Strike&) = delete;

  /// The phase begins. Strikes within it if it is the drill's phase.
  void enter(Phase phase) {
    if (!is_target_ || phase != drill_.phase) return;
    striker_ = std::thread([this] {
      std::this_thread::sleep_for(drill_.delay);
      if (over_) return;
      say(fmt::format("dying {}", now()));
      ::raise(drill_.action == Action::kKill ? SIGKILL : SIGSTOP);
    });
  }

 private:
  const Drill& drill_;
  bool is_target_;
  std::atomic<bool> over_ = false;
  std::thread striker_;
};

/// The same on all ranks: any operation on any memory, from a few elements to some hundred
/// thousand.
std::vector<Case> cases_of(const Drill& drill) {
  constexpr std::array kCounts = {1, 17, 1000, 20'000, 200'000};
  std::vector<Operation> operations(kAllCollectives.begin(), kAllCollectives.end());
  operations.push_back(Operation::kSend);
  std::mt19937 random(drill.seed);
  const auto any = [&](std::size_t count) { return random() % count; };
  std::vector<Case> cases;
  for (int i = 0; i < 64; ++i) {
    Case one{.operation = operations[any(operations.size())],
             .dtype = DType::kI32,
             .count = kCounts[any(kCounts.size())],
             .root = static_cast<Rank>(any(static_cast<std::size_t>(drill.ranks)))};
    one.form = any(2) == 0 ? Case::Form::kBlocking : Case::Form::kAsync;
    one.memory = any(2) == 0 ? Case::Memory::kForeign : Case::Memory::kRegistered;
    const bool whole = one.operation == Operation::kBroadcast ||
                       one.operation == Operation::kReduce ||
                       one.operation == Operation::kAllReduce || one.operation == Operation::kSend;
    if (!whole) one.count = std::max<std::int64_t>(1, one.count / drill.ranks);
    cases.push_back(one);
  }
  return cases;
}

int run(const Drill& drill, Rank self) {
  Strike strike(drill, self);  // also while the group ends
  ProcessGroupPtr group;
  try {
    strike.enter(Phase::kRendezvous);
    group = init_process_group();
    const std::vector<Case> cases = cases_of(drill);
    for (int round = 0; round < drill.rounds; ++round) {
      if (round == 1) strike.enter(Phase::kOperation);
      if (round % 16 == 1) say(fmt::format("at {}", round));
      const std::string wrong =
          run_case(*group, cases[static_cast<std::size_t>(round) % cases.size()]);
      if (!wrong.empty()) {
        say("wrong " + wrong);
        return 9;
      }
    }
    strike.enter(Phase::kTeardown);
    group->destroy();
    say("left");
    return 0;
  } catch (const Error& error) {
    say(fmt::format("ended {} {}", now(), error.what()));
    if (!group) return 3;
    try {
      group->barrier();
      say("again no error");
    } catch (const Error& again) {
      say(fmt::format("again {}", again.what()));
    }
    return 3;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const Drill drill = drill_of({arguments + 1, arguments + count});
  wait_at_gate();
  return run(drill, std::stoi(arguments[count - 1]));
}
