// A worker of an elastic job, for the tests in this folder.
//   train MILLISECONDS  takes steps until the test wants it to finish, with an all_reduce and this
//                       pause in each; after a loss or a change of hosts it continues in the next
//                       round. With ROUND RANK after it, this rank kills itself in this round
//                       before it meets the others
//   fail CODE           ends with this code at once
//   bug CODE            trains, but rank 0 ends with this code before the first step of each round
//   leave               trains in one round only, in which rank 1 soon ends with code 0
// It prints "pid P: round R, rank r of n, local l of m, cross c of d on HOST[SLOT], step S" at the
// beginning of each round, and "done" at the end.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "peal/config/environment.h"
#include "peal/init/init.h"
#include "peal/rendezvous/elastic_assignment.h"

namespace {

using namespace peal;
using rendezvous::ElasticAssignment;
using rendezvous::ElasticWorker;
using rendezvous::HostChanges;

void say(const std::string& text) { std::cout << text << std::endl; }

ProcessGroupPtr meet(const ElasticAssignment& place) {
  InitOptions options;
  options.rank = place.rank;
  options.world_size = place.size;
  options.store = place.store;
  options.is_whole_job = false;
  options.is_of_job = false;
  options.flight_dir = place.records;
  return init_process_group(options);
}

std::int64_t from_rank_0(ProcessGroup& group, std::int64_t value) {
  std::vector<std::int64_t> values = {value};
  group.broadcast(values, 0);
  return values.front();
}

bool may_finish() {
  const char* const folder = std::getenv("PEAL_TEST_ELASTIC");
  return std::filesystem::exists(std::filesystem::path(folder) / "finish");
}

enum Verdict : std::int64_t { kContinue, kNextRound, kFinish };

/// What all ranks do after a step, as rank 0 sees it.
Verdict verdict(ElasticWorker& worker) {
  if (may_finish()) return kFinish;
  return worker.host_changes() != HostChanges::kNone ? kNextRound : kContinue;
}

/// Trains in one round. Returns whether the training is over; if not, the hosts have changed.
bool train(ElasticWorker& worker,
           const ElasticAssignment& place,
           std::int64_t& step,
           std::chrono::milliseconds pause) {
  const ProcessGroupPtr group = meet(place);
  step = from_rank_0(*group, step);
  worker.mark_synchronized();
  say(fmt::format(
      "pid {}: round {}, rank {} of {}, local {} of {}, cross {} of {} on {}[{}], step {}",
      ::getpid(),
      place.round,
      place.rank,
      place.size,
      place.local_rank,
      place.local_size,
      place.cross_rank,
      place.cross_size,
      place.hostname,
      place.slot,
      step));
  std::int64_t next = kContinue;
  while (next == kContinue) {
    std::vector<std::int64_t> sum(1000, step * (place.rank + 1));
    group->all_reduce(sum);
    const std::int64_t expected = step * place.size * (place.size + 1) / 2;
    if (sum != std::vector<std::int64_t>(1000, expected)) {
      say(fmt::format("wrong sum in step {}", step));
      ::_exit(99);
    }
    ++step;
    std::this_thread::sleep_for(pause);
    next = from_rank_0(*group, place.rank == 0 ? verdict(worker) : kContinue);
  }
  if (next == kFinish) worker.finish();
  group->destroy();
  return next == kFinish;
}

/// The rank that kills itself.
struct Victim {
  int round = -1;
  Rank rank = -1;
};

/// A program that does not continue after a loss.
int leave_early() {
  const auto worker = rendezvous::join_elastic_job(process_environment());
  const auto place = worker->next_round();
  if (!place) return 1;
  const ProcessGroupPtr group = meet(*place);
  for (std::int64_t step = 0;; ++step) {
    if (place->rank == 1 && step == 3) ::_exit(0);
    from_rank_0(*group, step);
  }
}

/// Rank 0 fails in each round.
int train_with_bug(int code) {
  const auto worker = rendezvous::join_elastic_job(process_environment());
  while (const auto place = worker->next_round()) {
    try {
      const ProcessGroupPtr group = meet(*place);
      worker->mark_synchronized();
      from_rank_0(*group, 0);
      if (place->rank == 0) {
        say(fmt::format("round {} has a bug", place->round));
        ::_exit(code);
      }
      from_rank_0(*group, 0);
    } catch (const Error& error) {
      say(fmt::format("lost: {}", error.what()));
    }
  }
  return 1;
}

int train_in_rounds(std::chrono::milliseconds pause, const Victim& victim) {
  const auto worker = rendezvous::join_elastic_job(process_environment());
  std::int64_t step = 0;
  while (const auto place = worker->next_round()) {
    if (place->round == victim.round && place->rank == victim.rank) ::raise(SIGKILL);
    try {
      if (train(*worker, *place, step, pause)) {
        say("done");
        return 0;
      }
    } catch (const Error& error) {
      say(fmt::format("lost: {}", error.what()));
    }
  }
  say(worker->removal_text());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  try {
    if (what == "fail") return std::stoi(arguments[2]);
    if (what == "bug") return train_with_bug(std::stoi(arguments[2]));
    if (what == "leave") return leave_early();
    if (what == "train") {
      Victim victim;
      if (count > 4) victim = {std::stoi(arguments[3]), std::stoi(arguments[4])};
      return train_in_rounds(std::chrono::milliseconds(std::stol(arguments[2])), victim);
    }
  } catch (const std::exception& error) {
    say(fmt::format("ended by {}", error.what()));
    return 3;
  }
  return 2;
}
