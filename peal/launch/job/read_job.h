// Reads a job from a text in YAML or JSON, in one of three forms: peal's own, `trainingInput` of AI
// Platform Training, and `workerPoolSpecs` of Vertex AI. docs/guide/job_file.md shows them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/document.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

struct ReadJob {
  Job job;
  std::vector<std::string> notices{};  // for the user: fields that have no meaning here
  friend bool operator==(const ReadJob&, const ReadJob&) = default;
};

/// Reads a job. The keys at the top decide the form. `name` is the name of the file: errors contain
/// it, and a job without a name takes its name from it. The result fulfils `check`.
/// Errors: usage. The text begins with "NAME:LINE:COLUMN: ", or with "NAME: " if `check` fails.
ReadJob read_job(std::string_view text, const std::string& name);

/// The same for a parsed text, which flags may have changed (gcloud_flags.h). `unused`: flags
/// without a meaning here; the notices name them too.
ReadJob read_job(const Value& document,
                 const std::string& name,
                 std::vector<std::string> unused = {});

/// The form, by the keys at the top: kTrainingInput if there is trainingInput,
/// kWorkerPoolSpecs if there is workerPoolSpecs or jobSpec, else kPeal.
JobForm form_of(const Value& document);

}  // namespace peal::launch
