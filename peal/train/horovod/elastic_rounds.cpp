#include "peal/train/horovod/elastic_rounds.h"

#include <stdlib.h>

#include <memory>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/config/environment.h"
#include "peal/system/per_process.h"

namespace peal::hvd {
namespace {

using rendezvous::ElasticAssignment;
using rendezvous::ElasticWorker;

struct Rounds {
  std::shared_ptr<ElasticWorker> worker = nullptr;
  std::optional<ElasticAssignment> place = {};  // not yet taken by init
};

Guarded<Rounds>& rounds() {
  static constinit PerProcess<Guarded<Rounds>> own;
  return own.get();
}

/// Connects to the driver at the first call.
std::shared_ptr<ElasticWorker> worker() {
  return rounds().with([](Rounds& all) {
    if (!all.worker) all.worker = rendezvous::join_elastic_job(process_environment());
    return all.worker;
  });
}

std::map<std::string, std::string> variables_of(const ElasticAssignment& place) {
  return {{"HOROVOD_RANK", std::to_string(place.rank)},
          {"HOROVOD_SIZE", std::to_string(place.size)},
          {"HOROVOD_LOCAL_RANK", std::to_string(place.local_rank)},
          {"HOROVOD_LOCAL_SIZE", std::to_string(place.local_size)},
          {"HOROVOD_CROSS_RANK", std::to_string(place.cross_rank)},
          {"HOROVOD_CROSS_SIZE", std::to_string(place.cross_size)},
          {"HOROVOD_HOSTNAME", place.hostname}};
}

}  // namespace

bool is_in_elastic_job() { return rendezvous::is_elastic(process_environment()); }

std::optional<std::map<std::string, std::string>> next_elastic_round(const Interrupt& interrupt) {
  rounds().with([](Rounds& all) { return std::exchange(all.place, std::nullopt); });
  std::optional<ElasticAssignment> place = worker()->next_round(interrupt);
  if (!place) return std::nullopt;
  std::map<std::string, std::string> variables = variables_of(*place);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  rounds().with([&](Rounds& all) { all.place = std::move(place); });
  return variables;
}

ElasticAssignment take_elastic_place(const Interrupt& interrupt) {
  const auto take = [] {
    return rounds().with([](Rounds& all) { return std::exchange(all.place, std::nullopt); });
  };
  if (auto place = take()) return *std::move(place);
  if (!next_elastic_round(interrupt)) {
    throw Error(ErrorKind::kAborted, elastic_removal_text());
  }
  return *take();
}

rendezvous::HostChanges elastic_host_changes() { return worker()->host_changes(); }

void mark_elastic_synchronized() {
  if (is_in_elastic_job()) worker()->mark_synchronized();
}

void finish_elastic_job() { worker()->finish(); }

std::string elastic_removal_text() { return worker()->removal_text(); }

}  // namespace peal::hvd
