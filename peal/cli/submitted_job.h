// A job that was submitted: its runner, and its records if this machine has them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/runner.h"

namespace peal::cli {

class SubmittedJob final {
 public:
  /// Found by its records here, by the beginning of its id.
  /// Errors: usage (no such job, or several), resource (its records are damaged).
  explicit SubmittedJob(std::string_view text);
  /// Found by the engine of `runner` (only "kubernetes"), by its whole id: no records are needed.
  /// Errors: usage (another runner, no such job), resource (the engine does not answer).
  SubmittedJob(std::string_view id, std::string_view runner);

  const std::string& id() const { return submission_.id; }
  const launch::jobs::Submission& submission() const { return submission_; }
  launch::Runner& runner() const { return *runner_; }

  /// By the engine. After its end a job has the state that was recorded then, so that the engine
  /// may forget it; the first call that sees the end records it. Errors: resource.
  launch::JobStatus status() const;
  /// By the record of its end; nothing without this record. Errors: resource.
  std::optional<launch::jobs::WallTime> ended_at() const;
  /// Asks the job to end. May be repeated. Errors: resource.
  void cancel() const;

 private:
  launch::JobStatus status_of_the_runner() const;

  std::optional<launch::jobs::JobFolder> folder_;  // nothing: submitted elsewhere
  launch::jobs::Submission submission_;
  std::unique_ptr<launch::Runner> runner_;
};

}  // namespace peal::cli
