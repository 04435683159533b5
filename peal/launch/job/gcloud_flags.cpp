#include "peal/launch/job/gcloud_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/job/edit_document.h"
#include "peal/launch/job/pool_flag.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using enum FlagValue;

constexpr std::array kFlags = {
    GcloudFlag{"--scale-tier", kTier, "scaleTier", ""},
    GcloudFlag{"--master-machine-type", kText, "masterType", ""},
    GcloudFlag{"--master-image-uri", kText, "masterConfig.imageUri", ""},
    GcloudFlag{"--master-accelerator", kAccelerator, "masterConfig.acceleratorConfig", ""},
    GcloudFlag{"--worker-machine-type", kText, "workerType", ""},
    GcloudFlag{"--worker-count", kNumber, "workerCount", ""},
    GcloudFlag{"--worker-image-uri", kText, "workerConfig.imageUri", ""},
    GcloudFlag{"--worker-accelerator", kAccelerator, "workerConfig.acceleratorConfig", ""},
    GcloudFlag{"--parameter-server-machine-type", kText, "parameterServerType", ""},
    GcloudFlag{"--parameter-server-count", kNumber, "parameterServerCount", ""},
    GcloudFlag{"--parameter-server-image-uri", kText, "parameterServerConfig.imageUri", ""},
    GcloudFlag{"--parameter-server-accelerator",
               kAccelerator,
               "parameterServerConfig.acceleratorConfig",
               ""},
    GcloudFlag{"--use-chief-in-tf-config", kTruth, "useChiefInTfConfig", ""},
    GcloudFlag{"--module-name", kText, "pythonModule", ""},
    GcloudFlag{"--package-path", kPath, "packageUris", ""},
    GcloudFlag{"--packages", kPaths, "packageUris", ""},
    GcloudFlag{"--job-dir", kText, "jobDir", ""},
    GcloudFlag{"--runtime-version", kText, "runtimeVersion", ""},
    GcloudFlag{"--python-version", kText, "pythonVersion", ""},
    GcloudFlag{"--staging-bucket", kText, kUnused, ""},
    GcloudFlag{"--worker-pool-spec", kPool, "", "workerPoolSpecs"},
    GcloudFlag{"--display-name", kText, "", "/displayName"},
    GcloudFlag{"--args", kTexts, "", "args"},
    GcloudFlag{"--command", kTexts, "", "command"},
    GcloudFlag{"--python-package-uris", kPaths, "", "packageUris"},
    GcloudFlag{"--network", kText, "", "network"},
    GcloudFlag{"--persistent-resource-id", kText, "", "persistentResourceId"},
    GcloudFlag{"--enable-dashboard-access", kSwitch, "", "enableDashboardAccess"},
    GcloudFlag{"--labels", kMap, "/labels", "/labels"},
    GcloudFlag{"--region", kText, "region", kUnused},
    GcloudFlag{"--service-account", kText, "serviceAccount", "serviceAccount"},
    GcloudFlag{"--enable-web-access", kSwitch, "enableWebAccess", "enableWebAccess"},
    GcloudFlag{"--kms-key", kText, "encryptionConfig.kmsKeyName", "/encryptionSpec.kmsKeyName"},
    GcloudFlag{"--kms-keyring", kText, kUnused, kUnused},
    GcloudFlag{"--kms-location", kText, kUnused, kUnused},
    GcloudFlag{"--kms-project", kText, kUnused, kUnused},
    GcloudFlag{"--project", kText, kUnused, kUnused},
    GcloudFlag{"--account", kText, kUnused, kUnused},
    GcloudFlag{"--impersonate-service-account", kText, kUnused, kUnused},
    GcloudFlag{"--format", kText, kUnused, kUnused},
    GcloudFlag{"--verbosity", kText, kUnused, kUnused},
    GcloudFlag{"--quiet", kSwitch, kUnused, kUnused},
};

/// The place of parts that several flags make together.
Place flags_place() { return {0, 0, "the flags of the job"}; }

Error wrong(const GivenFlag& given, std::string_view problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", given.flag->name, problem));
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char letter) {
    return letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  });
  return result;
}

bool has_flag(JobForm form, const GcloudFlag& flag) {
  return !(form == JobForm::kTrainingInput ? flag.training : flag.custom_job).empty();
}

/// The form of a job that only flags describe.
JobForm form_by(std::span<const GivenFlag> flags) {
  const bool is_custom_job = std::ranges::any_of(
      flags, [](const GivenFlag& given) { return given.flag->training.empty(); });
  return is_custom_job ? JobForm::kWorkerPoolSpecs : JobForm::kTrainingInput;
}

void check_command(JobForm form, const GivenFlag& given) {
  if (form == JobForm::kPeal) {
    if (given.flag->training == kUnused && given.flag->custom_job == kUnused) return;
    throw wrong(given,
                "it changes a job in a form of gcloud (trainingInput or workerPoolSpecs), and this "
                "file is in peal's own form; write the value into the file");
  }
  if (has_flag(form, *given.flag)) return;
  throw wrong(given,
              form == JobForm::kTrainingInput
                  ? "it belongs to custom jobs of Vertex AI (workerPoolSpecs), and this job is a "
                    "trainingInput"
                  : "it belongs to training jobs of AI Platform (trainingInput), and this job has "
                    "workerPoolSpecs");
}

/// count=2,type=nvidia-tesla-t4; the count is 1 if it is missing.
Value accelerator(const GivenFlag& given, const Place& place) {
  Value config = map_at(place);
  set(config, "count", word_at("1", place));
  for (const auto& [name, value] : pairs_in(given.value, given.flag->name)) {
    if (name != "count" && name != "type") {
      throw wrong(given, fmt::format("{} is not count or type", quoted_beginning(name)));
    }
    set(config, name, name == "type" ? text_at(upper(value), place) : word_at(value, place));
  }
  return config;
}

Value truth(const GivenFlag& given, const Place& place) {
  for (const char* const yes : {"true", "yes", "1"}) {
    if (given.value == yes) return word_at("true", place);
  }
  for (const char* const no : {"false", "no", "0"}) {
    if (given.value == no) return word_at("false", place);
  }
  throw wrong(given, fmt::format("{} is not true or false", quoted_beginning(given.value)));
}

/// What the flag writes. kMap and kPool are not set but added.
Value value_of(const GivenFlag& given, const std::string& here, const Place& place) {
  switch (given.flag->value) {
    case kNumber:
      return word_at(given.value, place);
    case kTier:
      return text_at(upper(given.value), place);
    case kTruth:
      return truth(given, place);
    case kSwitch:
      return word_at("true", place);
    case kTexts:
      return list_at(parts_in(given.value), place);
    case kPaths:
      return paths_at(parts_in(given.value), here, place);
    case kPath:
      return paths_at({given.value}, here, place);
    case kAccelerator:
      return accelerator(given, place);
    case kText:
    case kMap:
    case kPool:
      break;
  }
  return text_at(given.value, place);
}

/// Writes the flags of one job.
class Writer final {
 public:
  Writer(Value& document, JobForm form, std::string here)
      : document_(document), form_(form), here_(std::move(here)) {}

  void write(const GivenFlag& given);

 private:
  Value& spec() {
    if (form_ == JobForm::kTrainingInput) return map_in(document_, "trainingInput", flags_place());
    return find(document_, "jobSpec") != nullptr ? map_in(document_, "jobSpec", flags_place())
                                                 : document_;
  }
  void write_pools(const GivenFlag& given, const Place& place);

  Value& document_;
  JobForm form_;
  std::string here_;           // the folder of relative paths
  bool has_pools_ = false;     // of flags, which replace those of the file
  bool has_packages_ = false;  // the same
};

void Writer::write(const GivenFlag& given) {
  const Place place{0, 0, std::string(given.flag->name)};
  std::string_view path =
      form_ == JobForm::kTrainingInput ? given.flag->training : given.flag->custom_job;
  if (form_ == JobForm::kWorkerPoolSpecs && !path.starts_with('/')) {
    const bool is_for_pools =
        given.flag->value == kPool || given.flag->value == kTexts || given.flag->value == kPaths;
    if (is_for_pools) return write_pools(given, place);
  }
  const bool is_beside = path.starts_with('/');
  if (is_beside) path.remove_prefix(1);
  Value& target = value_in(is_beside ? document_ : spec(), path, place);
  if (given.flag->value == kMap) {
    if (target.kind != Value::Kind::kMap) target = map_at(place);
    for (const auto& [name, value] : pairs_in(given.value, given.flag->name)) {
      set(target, name, text_at(value, place));
    }
  } else if (path == "packageUris" && std::exchange(has_packages_, true)) {
    Value more = value_of(given, here_, place);
    std::ranges::move(more.items, std::back_inserter(target.items));
  } else {
    target = value_of(given, here_, place);
  }
}

void Writer::write_pools(const GivenFlag& given, const Place& place) {
  Value& pools = value_in(spec(), "workerPoolSpecs", place);
  if (given.flag->value == kPool) {
    if (!std::exchange(has_pools_, true)) pools = list_at({}, place);
    pools.items.push_back(pool_of(given.value, here_, place));
    return;
  }
  bool is_taken = false;
  for (Value& pool : pools.items) {
    for (const char* const program : {"containerSpec", "pythonPackageSpec"}) {
      Value* const program_spec = find(pool, program);
      const bool is_package = program == std::string_view("pythonPackageSpec");
      const bool takes = given.flag->custom_job == "args" ||
                         (given.flag->custom_job == "packageUris") == is_package;
      if (program_spec == nullptr || !takes) continue;
      set(*program_spec, given.flag->custom_job, value_of(given, here_, place));
      is_taken = true;
    }
  }
  if (is_taken) return;
  throw wrong(given,
              given.flag->custom_job == "packageUris"
                  ? "no pool has a package of Python; give executor-image-uri and python-module in "
                    "--worker-pool-spec"
                  : "no pool has a container; give container-image-uri in --worker-pool-spec");
}

}  // namespace

std::span<const GcloudFlag> gcloud_flags() { return kFlags; }

const GcloudFlag* gcloud_flag(std::string_view name) {
  const auto* const flag = std::ranges::find(kFlags, name, &GcloudFlag::name);
  return flag == kFlags.end() ? nullptr : flag;
}

FlaggedDocument with_flags(Value document,
                           const std::string& job,
                           std::span<const GivenFlag> flags,
                           const std::string& here) {
  const bool is_new = document.kind == Value::Kind::kNull;
  const JobForm form = is_new ? form_by(flags) : form_of(document);
  if (is_new) document = map_at(flags_place());
  FlaggedDocument result;
  Writer writer(document, form, here);
  // The pools come before the flags that change all pools.
  std::vector<GivenFlag> ordered(flags.begin(), flags.end());
  std::stable_partition(ordered.begin(), ordered.end(), [](const GivenFlag& given) {
    return given.flag->value == kPool;
  });
  for (const GivenFlag& given : ordered) {
    check_command(form, given);
    const std::string_view path =
        form == JobForm::kTrainingInput ? given.flag->training : given.flag->custom_job;
    if (path == kUnused) {
      result.unused.emplace_back(given.flag->name);
    } else {
      writer.write(given);
    }
  }
  if (!job.empty()) {
    const char* const key = form == JobForm::kTrainingInput     ? "jobId"
                            : form == JobForm::kWorkerPoolSpecs ? "displayName"
                                                                : "name";
    set(document, key, text_at(job, Place{0, 0, "the name of the job"}));
  }
  result.document = std::move(document);
  return result;
}

}  // namespace peal::launch
