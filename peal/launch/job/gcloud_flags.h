// gcloud's flags for training jobs, by their names. They change a job file of a managed form, or
// make one: `gcloud ai-platform jobs submit training` (trainingInput) and `gcloud ai custom-jobs
// create` (workerPoolSpecs). Pure functions, called by `peal submit`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/document.h"

namespace peal::launch {

/// What a flag takes.
enum class FlagValue : unsigned char {
  kText,
  kNumber,
  kTier,         // basic-gpu
  kTruth,        // true or false
  kSwitch,       // nothing
  kTexts,        // a,b
  kPath,         // one path
  kPaths,        // paths, separated by commas
  kMap,          // name=value,...
  kAccelerator,  // count=2,type=nvidia-tesla-t4
  kPool,         // replica-count=2,machine-type=n1-standard-4,...; once for each pool
};

struct GcloudFlag {
  std::string_view name;  // "--worker-count"
  FlagValue value;
  /// The field that the flag sets, in trainingInput and in the spec of a custom job. A / at the
  /// front: the field is beside trainingInput or the spec, not inside. kUnused: the flag has no
  /// effect. Empty: the command of gcloud has no such flag.
  std::string_view training;
  std::string_view custom_job;
  friend bool operator==(const GcloudFlag&, const GcloudFlag&) = default;
};
inline constexpr std::string_view kUnused = "-";

/// All flags but --config and those of the client (--stream-logs, --async).
std::span<const GcloudFlag> gcloud_flags();

/// The flag with this name; nullptr if no flag has the name.
const GcloudFlag* gcloud_flag(std::string_view name);

struct GivenFlag {
  const GcloudFlag* flag;
  std::string value{};  // empty for a switch
  friend bool operator==(const GivenFlag&, const GivenFlag&) = default;
};

struct FlaggedDocument {
  Value document;
  std::vector<std::string> unused{};  // flags without a meaning here
};

/// The document with the fields that the flags set. Flags override fields of the document. If
/// `document` is empty (null), the flags make a job. The job is for Vertex AI if a flag exists only
/// there.
///   `job`: the name of the job on the command line; empty: none.
///   `here`: the folder to which paths in flags are relative; empty: the folder of the document.
/// Errors: usage: a flag of the other command of gcloud, a flag with a file in peal's own form, a
///   malformed value. The readers check the fields: errors name the flag.
FlaggedDocument with_flags(Value document,
                           const std::string& job,
                           std::span<const GivenFlag> flags,
                           const std::string& here = "");

/// The document with these arguments after those of each role. In trainingInput they come before
/// --job-dir, as gcloud's USER_ARGS.
Value with_arguments(Value document, const std::vector<std::string>& arguments);

}  // namespace peal::launch
