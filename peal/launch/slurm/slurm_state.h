// What Slurm says about a job, and the status that follows from it together with the records of
// the launcher. Pure. Called by slurm_runner.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/jobs/job_status.h"

namespace peal::launch::slurm {

/// A job, as Slurm describes it; of a heterogeneous job, a component.
struct SlurmJob {
  std::string name{};
  std::string state{};             // "PENDING"
  std::string reason{};            // "Resources"; empty: none
  std::optional<int> exit_code{};  // of the batch script; 128+n for signal n
  int requeues = 0;                // how often Slurm has put the job into its queue again
  bool is_preempted = false;       // also if the job has ended by itself since then
  std::string lost_host{};         // of the launcher, if Slurm has removed it from the job
  bool may_requeue = false;        // not with --no-requeue
  bool is_component = false;       // of a heterogeneous job
  friend bool operator==(const SlurmJob&, const SlurmJob&) = default;
};

/// Reads the output of `scontrol show job -o NUMBER`: a line for each component.
std::vector<SlurmJob> read_scontrol(std::string_view text);

/// Reads the output of `sacct -X -n -P -o JobName,State,ExitCode -j NUMBER`.
std::vector<SlurmJob> read_sacct(std::string_view text);

/// The component that tells how the job is: one that Slurm has ended, else the first one. Nothing
/// for an empty list.
std::optional<SlurmJob> decisive(const std::vector<SlurmJob>& components);

/// Whether the job has ended for Slurm: also COMPLETED and FAILED. After COMPLETING, it may wait in
/// the queue again.
bool is_final(std::string_view state);

/// Whether Slurm's final state was added to the recorded end.
bool has_final_state(const std::optional<jobs::JobEnd>& end);

/// The recorded end; nothing if the end is older than the last requeue. The launcher removes an
/// older end only when the launcher starts again.
std::optional<jobs::JobEnd> end_of_this_start(const jobs::JobRecords& records, const SlurmJob& job);

/// An end that was recorded before the last requeue does not count. The first row that applies:
/// | Slurm | records | state |
/// |---|---|---|
/// | any | an end with Slurm's final state | as recorded |
/// | TIMEOUT, DEADLINE | any | cancelled, with exit code 124 |
/// | NODE_FAIL, BOOT_FAIL, OUT_OF_MEMORY, PREEMPTED, REVOKED | any | failed, by Slurm |
/// | CANCELLED | any | cancelled |
/// | PENDING, CONFIGURING | any | queued, preparing; cancelling, if asked |
/// | COMPLETING, preempted | an end | preparing; cancelling, if asked |
/// | COMPLETING | an end by preemption, or by a signal | the same |
/// | any other, or nothing | an end | as recorded |
/// | RUNNING without the launcher's node | no end | cancelling, if asked; else unknown |
/// | RUNNING, COMPLETING, SIGNALING, STAGE_OUT | of a live launcher | as recorded |
/// | the same | other | preparing |
/// | COMPLETED, FAILED | no end | by the launcher's exit code; cancelled, if asked |
/// | any other | any | unknown, with Slurm's word |
/// | does not know the job | `peal submit` still submits it | queued; cancelling, if asked |
/// | does not know the job | no end | cancelled, if asked; else unknown |
/// `job`: nothing if Slurm does not know it.
JobStatus status_of(const jobs::JobRecords& records,
                    const std::optional<SlurmJob>& job,
                    jobs::WallTime now);

}  // namespace peal::launch::slurm
