// A worker of an elastic job, for the tests in this folder.
//   train STEPS MILLISECONDS  takes that many steps, with an all_reduce in each; after each loss or
//                             change of hosts it continues in the next round
//   fail CODE                 ends with this code at once
//   wait                      asks for a round, and then only waits
// It prints "pid P: round R, rank r of n, local l of m, cross c of d on HOST[SLOT], step S" at the
// beginning of each round, and "done" at the end.
#include <unistd.h>

#include <chrono>
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
  return init_process_group(options);
}

std::int64_t from_rank_0(ProcessGroup& group, std::int64_t value) {
  std::vector<std::int64_t> values = {value};
  group.broadcast(values, 0);
  return values.front();
}

/// Trains in one round. Returns whether all steps are taken; if not, the hosts have changed.
bool train(ElasticWorker& worker,
           const ElasticAssignment& place,
           std::int64_t& step,
           std::int64_t steps,
           std::chrono::milliseconds pause) {
  const ProcessGroupPtr group = meet(place);
  step = from_rank_0(*group, step);
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
  while (step < steps) {
    std::vector<std::int64_t> sum(1000, step * (place.rank + 1));
    group->all_reduce(sum);
    const std::int64_t expected = step * place.size * (place.size + 1) / 2;
    if (sum != std::vector<std::int64_t>(1000, expected)) {
      say(fmt::format("wrong sum in step {}", step));
      ::_exit(99);
    }
    ++step;
    std::this_thread::sleep_for(pause);
    const bool asks = place.rank == 0 && worker.host_changes() != HostChanges::kNone;
    if (from_rank_0(*group, asks ? 1 : 0) == 1) {
      group->destroy();
      return false;
    }
  }
  worker.finish();
  group->destroy();
  return true;
}

int train_in_rounds(std::int64_t steps, std::chrono::milliseconds pause) {
  const auto worker = rendezvous::join_elastic_job(process_environment());
  std::int64_t step = 0;
  while (const auto place = worker->next_round()) {
    try {
      if (train(*worker, *place, step, steps, pause)) {
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
    if (what == "train") {
      return train_in_rounds(std::stol(arguments[2]),
                             std::chrono::milliseconds(std::stol(arguments[3])));
    }
    if (what == "wait") {
      const auto worker = rendezvous::join_elastic_job(process_environment());
      worker->next_round();
      say("waits");
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  } catch (const std::exception& error) {
    say(fmt::format("ended by {}", error.what()));
    return 3;
  }
  return 2;
}
