// What a worker of an elastic job asks the driver of its job: its place in the next round, and
// whether the hosts have changed. `hvd` calls this at init and at each reset. The driver is
// launch/elastic.
//
//   if (is_elastic(environment)) {
//     const auto worker = join_elastic_job(environment);       // once in a process
//     while (const auto place = worker->next_round()) {        // nothing: this worker was removed
//       const auto group = init_process_group({.rank = place->rank,
//                                              .world_size = place->size,
//                                              .store = place->store,
//                                              .is_whole_job = false,
//                                              .is_of_job = false,
//                                              .flight_dir = place->records});
//       ... broadcast the state from rank 0 ...
//       worker->mark_synchronized();
//       ... train; leave the loop body on an Error of the group, or if worker->host_changes() ...
//     }
//   }
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "peal/base/interrupt.h"
#include "peal/base/units.h"
#include "peal/config/environment.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// The place of a worker in one round: the time between two changes of the group.
struct ElasticAssignment {
  int round = 0;  // 1 is the first; it grows by 1 with each reset
  Rank rank = 0;  // rank 0 has the state of the training, unless this is the first round
  int size = 1;
  Rank local_rank = 0;  // among the workers of this host name, in the order of their slots
  int local_size = 1;
  Rank cross_rank = 0;  // among the hosts that have this local rank
  int cross_size = 1;
  std::string hostname;  // as discovered: "localhost" and "127.0.0.1" are two hosts
  int slot = 0;          // of the host; the same in all rounds of this process
  /// The folder for the records of this round (`peal why`), for InitOptions::flight_dir. Empty: the
  /// job keeps no records.
  std::string records{};
  /// The meeting place of this round, for InitOptions::store. Release it with the group: a worker
  /// that holds it seems to be alive to ranks that meet in it.
  std::shared_ptr<store::Store> store;
};

/// How the hosts have changed since a round began.
enum class HostChanges : unsigned char {
  kNone,
  kAdded,    // workers on new slots are ready to join
  kRemoved,  // workers of this round have lost their slots
  kBoth,
};

/// A process's part in an elastic job. The same object, and so the same process, takes part in many
/// rounds. The driver sees the end of the process by itself.
/// Threads: any number at once, but only one in `next_round`.
/// Errors of every call: peer_lost (the driver has ended: this process should end too), timeout
/// (the driver does not answer for 10 s).
class ElasticWorker {
 public:
  virtual ~ElasticWorker() = default;

  /// Leaves the current round and waits for the next. The round begins when each worker of the
  /// current one has asked for it or has ended, and enough workers are there. Returns nothing if
  /// the driver has removed this worker; the process should then end with removal_text().
  /// Destroy the group of the current round first: other workers may still wait in it. If
  /// init_process_group throws peer_lost, a rank was lost meanwhile: ask for the next round.
  /// Errors: aborted, with the driver's reason (the job ends; the reset limit; too few workers).
  /// Rethrows what `interrupt` throws; the process should then end.
  virtual std::optional<ElasticAssignment> next_round(const Interrupt& interrupt = {}) = 0;

  /// Asks whether a new round would have other workers. The answer changes once or twice in a
  /// round, and not at the same moment on all ranks: let rank 0 ask, and broadcast its answer.
  /// Ask after each commit of the state: the first call in a round also notifies the driver that
  /// the round makes progress. If a worker fails before such a call in three rounds in a row,
  /// the driver ends the job. Cost: one request to the driver, some 50 us.
  virtual HostChanges host_changes() = 0;

  /// Notifies the driver that this worker has the state of the training. Call it in each round,
  /// after rank 0 has broadcast the state. A worker that joins a later round, and never calls it,
  /// cannot become rank 0: if all others are lost, the job ends instead of starting from nothing.
  virtual void mark_synchronized() = 0;

  /// Notifies the driver that this worker will end well. From now on the driver starts no workers
  /// and begins a new round only for workers that ask for one. Optional: the end of a process with
  /// exit code 0 means the same.
  virtual void finish() = 0;

  /// "localhost[0] has been removed from elastic job"
  virtual std::string removal_text() const = 0;
};

/// Whether the driver of an elastic job has started this process (PEAL_ELASTIC_DRIVER is set, and
/// HOROVOD_ELASTIC=1).
bool is_elastic(const Environment& environment);

/// Connects to the driver. The identity of the worker is in variables that do not change while the
/// process lives, so HOROVOD_RANK and similar variables may be updated in each round.
/// Errors: usage (a variable is missing or wrong; another secret), peer_lost, timeout.
std::unique_ptr<ElasticWorker> join_elastic_job(const Environment& environment);

}  // namespace peal::rendezvous
