// Makes the runner of a job that is about to be submitted, or was submitted.
#pragma once

#include <memory>
#include <string>

#include "peal/launch/jobs/job_records.h"
#include "peal/launch/runner.h"

namespace peal::cli {

/// The path of this program.
std::string own_path();

/// `submission`: of the job. Errors: usage, for a runner that this peal does not have.
std::unique_ptr<launch::Runner> make_runner(const launch::jobs::Submission& submission);

}  // namespace peal::cli
