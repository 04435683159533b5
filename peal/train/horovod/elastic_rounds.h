// This process as a worker of an elastic job: its place in each round, by the driver of the job.
// Used by context.cpp, elastic.cpp and the module for Python.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "peal/base/interrupt.h"
#include "peal/rendezvous/elastic_assignment.h"

namespace peal::hvd {

/// Whether the driver of an elastic job has started this process.
bool is_in_elastic_job();

/// Waits for the next round. The next init() takes the place of this process there. The result has
/// this place as variables: HOROVOD_RANK, HOROVOD_SIZE, ..., which are also set in this process.
/// Returns nothing if the driver has removed this process, which should then end.
/// Call shutdown() first. Threads: no other thread reads the environment meanwhile.
/// Errors: aborted (the job ends; the text says why), peer_lost and timeout (the driver), what
///   `interrupt` throws.
std::optional<std::map<std::string, std::string>> next_elastic_round(
    const Interrupt& interrupt = {});

/// The place for which next_elastic_round has waited; waits for it, if it was not called since the
/// last init().
/// Errors: as next_elastic_round; aborted, if this process was removed.
rendezvous::ElasticAssignment take_elastic_place(const Interrupt& interrupt);

/// How the hosts have changed since the round began.
/// Errors: peer_lost and timeout (the driver).
rendezvous::HostChanges elastic_host_changes();

/// Notifies the driver that this process has the state of the training: to be called after each
/// State::sync. Without it, a process that joined a later round cannot continue alone, and the job
/// ends when all others are lost. Does nothing outside an elastic job.
/// Errors: peer_lost and timeout (the driver).
void mark_elastic_synchronized();

/// Notifies the driver that this process will end well.
void finish_elastic_job();

/// "localhost[0] has been removed from elastic job"
std::string elastic_removal_text();

}  // namespace peal::hvd
