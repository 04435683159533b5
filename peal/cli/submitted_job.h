// A job that was submitted, found by the beginning of its id: its records and its runner.
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
  /// Errors: usage (no such job, or several), resource (its records are damaged).
  explicit SubmittedJob(std::string_view text);

  std::string id() const { return folder_.id(); }
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

  const launch::jobs::JobFolder folder_;
  const launch::jobs::Submission submission_;
  const std::unique_ptr<launch::Runner> runner_;
};

}  // namespace peal::cli
