// The logs of a job from its folder, for `peal logs`: while the job runs, before, and after its
// end. The launcher writes one file for each stream of each rank (JobFolder::rank_log).
#pragma once

#include <functional>

#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/runner.h"

namespace peal::launch::jobs {

/// Whether no rank writes any more.
using HasEnded = std::function<bool()>;

/// Passes whole lines of the ranks to `sink`, in order for each stream.
/// - Without `follow`: rank by rank, first stdout, then stderr, of the last attempt or of
///   `query.attempt`. Nothing if nothing was started.
/// - With `follow`: begins with what exists of the last attempt, and continues with what is
///   written, also by later attempts, until the job has ended. May begin before the job starts.
///   With `query.attempt`: only that attempt, and still until the job has ended. When an attempt
///   has failed and another one follows, `query.tell` gets a sentence.
/// Lines longer than 1 MB are cut.
/// Errors: usage (the job has no such rank or attempt), resource (a file is damaged or cannot be
///   read). Throws Interrupted, and what `sink` throws.
/// Cost: with `follow`, one stat(2) for each log and a look at the records every 100 ms.
void read_logs(const JobFolder& folder, const LogQuery& query, const LogSink& sink);

/// The same for a runner that knows the end of the job better than the folder does.
void read_logs(const JobFolder& folder,
               const LogQuery& query,
               const LogSink& sink,
               const HasEnded& has_ended);

}  // namespace peal::launch::jobs
