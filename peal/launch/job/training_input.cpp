// The form of AI Platform Training: trainingInput, with jobId and labels beside it.
// Source: the API's reference (TrainingInput, ReplicaConfig, Scheduling).
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/printable.h"
#include "peal/launch/job/forms.h"
#include "peal/launch/job/managed.h"

namespace peal::launch {
namespace {

constexpr std::string_view kTrainingPrefix = "trainingInput.";
constexpr std::string_view kNoParameterServers =
    "peal has no parameter servers, because all_reduce needs none; remove the parameterServer "
    "fields";
constexpr std::size_t kLongestJobId = 128;

constexpr std::array<std::string_view, 6> kAccelerators = {"NVIDIA_TESLA_K80",
                                                           "NVIDIA_TESLA_P100",
                                                           "NVIDIA_TESLA_V100",
                                                           "NVIDIA_TESLA_P4",
                                                           "NVIDIA_TESLA_T4",
                                                           "NVIDIA_TESLA_A100"};

constexpr std::array<std::string_view, 27> kFields = {"scaleTier",
                                                      "masterType",
                                                      "masterConfig",
                                                      "workerType",
                                                      "workerCount",
                                                      "workerConfig",
                                                      "parameterServerType",
                                                      "parameterServerCount",
                                                      "parameterServerConfig",
                                                      "evaluatorType",
                                                      "evaluatorCount",
                                                      "evaluatorConfig",
                                                      "args",
                                                      "packageUris",
                                                      "pythonModule",
                                                      "region",
                                                      "jobDir",
                                                      "runtimeVersion",
                                                      "pythonVersion",
                                                      "scheduling",
                                                      "hyperparameters",
                                                      "nasJobSpec",
                                                      "network",
                                                      "serviceAccount",
                                                      "encryptionConfig",
                                                      "enableWebAccess",
                                                      "useChiefInTfConfig"};

/// The clusters of the tiers. peal does not start the parameter servers of the service.
struct Tier {
  std::string_view name;
  std::string_view master;
  int workers = 0;
  std::string_view worker = {};
  int gpus = 0;
  int parameter_servers = 0;
};
constexpr std::array kTiers = {
    Tier{.name = "BASIC", .master = "n1-standard-4"},
    Tier{.name = "STANDARD_1",
         .master = "n1-highcpu-8",
         .workers = 4,
         .worker = "n1-highcpu-8",
         .parameter_servers = 3},
    Tier{.name = "PREMIUM_1",
         .master = "n1-highcpu-16",
         .workers = 19,
         .worker = "n1-highcpu-16",
         .parameter_servers = 11},
    Tier{.name = "BASIC_GPU", .master = "n1-standard-8", .gpus = 1},
    Tier{.name = "CUSTOM", .master = ""},
};
constexpr std::string_view kTpuTier = "BASIC_TPU";

/// masterConfig, workerConfig or evaluatorConfig.
struct Replica {
  std::string image{};
  std::vector<std::string> command{};
  std::optional<std::vector<std::string>> args{};
  std::optional<int> gpus{};
};

/// The replicas of one kind, before the image of the master is known for all.
struct Group {
  std::string name;
  int count = 0;
  std::optional<MachineType> machine{};
  Replica replica{};
};

class TrainingInput final {
 public:
  explicit TrainingInput(const Field& field) : input_(field, {kFields.begin(), kFields.end()}) {}

  FormResult read();

 private:
  void read_tier();
  void read_groups();
  void read_group(Group& group);
  void check_tier(const Group& group, const std::optional<Field>& field) const;
  void check_categories() const;
  Replica read_replica(std::string_view key);
  void read_program();
  void read_scheduling();
  void add_role(const Group& group);
  void refuse_the_impossible();

  const Members input_;
  Unused unused_{};
  const Tier* tier_ = nullptr;
  Group master_{.name = "master", .count = 1};
  Group worker_{.name = "worker"};
  Group evaluator_{.name = "evaluator"};
  std::vector<std::string> module_{};  // the command that starts pythonModule
  std::vector<std::string> args_{};
  std::vector<std::string> job_dir_{};
  FormResult result_{};
};

FormResult TrainingInput::read() {
  Job& job = result_.job;
  job.form = JobForm::kTrainingInput;
  job.document = to_json(input_.field().value());
  job.success_role = "master";
  refuse_the_impossible();
  read_tier();
  read_groups();
  read_program();
  read_scheduling();
  if (const auto flag = input_.take("useChiefInTfConfig")) flag->flag();  // read from the document
  unused_.take(input_,
               {"region", "network", "serviceAccount", "encryptionConfig", "enableWebAccess"});
  for (const Group* const group : {&master_, &worker_, &evaluator_}) add_role(*group);
  if (tier_->parameter_servers > 0) {
    result_.notices.push_back(
        fmt::format("the {} parameter servers of {} are not started: all_reduce needs none",
                    tier_->parameter_servers,
                    tier_->name));
  }
  result_.unused = unused_.names(kTrainingPrefix);
  return std::move(result_);
}

void TrainingInput::refuse_the_impossible() {
  refuse(input_,
         "hyperparameters",
         "peal does not search hyperparameters; remove the field, and submit a job for each trial");
  refuse(input_,
         "nasJobSpec",
         "peal does not search network architectures; remove the field, and submit a job for each "
         "trial");
  const auto count = input_.take("parameterServerCount");
  if (count && count->integer(0, kMostManagedNodes) > 0) throw count->error(kNoParameterServers);
  refuse(input_, "parameterServerType", kNoParameterServers);
  refuse(input_, "parameterServerConfig", kNoParameterServers);
}

void TrainingInput::read_tier() {
  const auto field = input_.take("scaleTier");
  const std::string name = field ? field->text() : std::string(kTiers.front().name);
  if (name == kTpuTier) {
    throw field->error("peal has no TPUs; choose BASIC_GPU, or CUSTOM with a masterType");
  }
  const auto* const tier = std::ranges::find(kTiers, name, &Tier::name);
  if (tier != kTiers.end()) {
    tier_ = tier;
    return;
  }
  std::vector<std::string_view> names;
  for (const Tier& known : kTiers) names.push_back(known.name);
  const std::string_view nearest = nearest_word(name, names);
  throw field->error(
      nearest.empty()
          ? fmt::format(
                "there is no tier {}, only {}", quoted_beginning(name), fmt::join(names, ", "))
          : fmt::format("there is no tier {}; did you mean {}?", quoted_beginning(name), nearest));
}

/// Fields of machines and counts belong to the tier CUSTOM.
void TrainingInput::check_tier(const Group& group, const std::optional<Field>& field) const {
  if (!field || tier_->name == "CUSTOM") return;
  throw field->error(
      fmt::format("the tier {} decides about the {}; write scaleTier: CUSTOM, or "
                  "remove this field",
                  tier_->name,
                  group.name));
}

void TrainingInput::read_group(Group& group) {
  const bool is_master = group.name == "master";
  const std::string type_key = group.name + "Type";
  const std::string count_key = group.name + "Count";
  const auto type = input_.take(type_key);
  const auto count = is_master ? std::nullopt : input_.take(count_key);
  check_tier(group, type);
  check_tier(group, count);
  if (type) group.machine = read_machine_type(*type);
  if (count) group.count = count->integer(0, kMostManagedNodes);
  if (is_master) {
    if (tier_->name == "CUSTOM" && !type) {
      throw input_.field().error(
          "scaleTier: CUSTOM needs masterType (--master-machine-type), as n1-standard-8");
    }
  } else if (group.count > 0 && !type) {
    throw count->error(
        fmt::format("it needs {} (--{}-machine-type), as n1-standard-8", type_key, group.name));
  } else if (group.count == 0 && type && count) {
    throw count->error(
        fmt::format("with {}, it is at least 1: give the number of {}s, or remove {}",
                    type_key,
                    group.name,
                    type_key));
  } else if (group.count == 0 && type) {
    throw type->error(fmt::format("it needs {}, the number of {}s", count_key, group.name));
  }
  group.replica = read_replica(group.name + "Config");
}

void TrainingInput::read_groups() {
  for (Group* const group : {&master_, &worker_, &evaluator_}) read_group(*group);
  if (tier_->name != "CUSTOM") {
    master_.machine = machine_type(tier_->master);
    if (tier_->gpus > 0) master_.machine->resources.gpus = tier_->gpus;
    worker_.count = tier_->workers;
    if (tier_->workers > 0) worker_.machine = machine_type(tier_->worker);
  }
  check_categories();
}

void TrainingInput::check_categories() const {
  for (const Group* const group : {&worker_, &evaluator_}) {
    if (!group->machine || group->machine->names == master_.machine->names) continue;
    const Value* const type = find(input_.field().value(), group->name + "Type");
    throw input_.field()
        .part(*type, group->name + "Type")
        .error(
            "masterType and this field mix the older names of machines (standard) with those of "
            "Compute Engine (n1-standard-4); use one kind for all");
  }
}

Replica TrainingInput::read_replica(std::string_view key) {
  Replica replica;
  const auto field = input_.take(key);
  if (!field) return replica;
  const Members members(*field,
                        {"imageUri",
                         "containerCommand",
                         "containerArgs",
                         "acceleratorConfig",
                         "diskConfig",
                         "tpuTfVersion"});
  if (const auto image = members.take("imageUri")) replica.image = image->text();
  if (const auto command = members.take("containerCommand")) replica.command = command->texts();
  if (const auto args = members.take("containerArgs")) {
    replica.args = args->texts();
    if (find(input_.field().value(), "args") != nullptr) {
      throw args->error("it excludes trainingInput.args; write the arguments in one of the two");
    }
  }
  if (const auto accelerators = members.take("acceleratorConfig")) {
    const Members parts(*accelerators, {"type", "count"});
    replica.gpus = read_accelerators(parts, "type", "count", kAccelerators);
  }
  refuse(members, "tpuTfVersion", "peal has no TPUs; remove the field");
  unused_.take(members, {"diskConfig"});
  return replica;
}

/// The program: an image, or a module of Python.
void TrainingInput::read_program() {
  if (const auto args = input_.take("args")) args_ = args->texts();
  if (const auto folder = input_.take("jobDir")) job_dir_ = {"--job-dir", folder->text()};
  const auto module = input_.take("pythonModule");
  const auto packages = input_.take("packageUris");
  unused_.take(input_, {"runtimeVersion", "pythonVersion"});
  const bool has_image = !master_.replica.image.empty() || !worker_.replica.image.empty() ||
                         !evaluator_.replica.image.empty();
  for (const auto* const field : {&module, &packages}) {
    if (*field && has_image) {
      throw(*field)->error(
          "a job has images (masterConfig.imageUri) or a module of Python, not "
          "both; remove one");
    }
  }
  if (packages) {
    Packages read = read_packages(*packages);
    result_.job.files = std::move(read.files);
    if (!read.python_path.empty()) result_.job.env["PYTHONPATH"] = read.python_path;
  }
  if (module) {
    module_ = {"python3", "-m", module->text()};
  } else if (master_.replica.image.empty()) {
    throw input_.field().error(
        "the image is missing: write masterConfig: {imageUri: ...} (--master-image-uri), or "
        "pythonModule (--module-name) for a program without a container");
  }
}

void TrainingInput::read_scheduling() {
  using std::chrono::seconds;
  Job& job = result_.job;
  job.max_run_time = kManagedRunTime;
  job.restarts.most = kManagedRestarts;
  const auto field = input_.take("scheduling");
  if (!field) return;
  const Members members(
      *field,
      {"maxRunningTime", "maxWaitTime", "priority", "resilientToWorkerRestart", "strategy"});
  if (const auto time = members.take("maxRunningTime")) job.max_run_time = time->seconds();
  if (const auto time = members.take("maxWaitTime")) {
    job.start_timeout = time->seconds();
    if (job.start_timeout < seconds(1800)) throw time->error("it is less than 1800s");
  }
  if (const auto priority = members.take("priority")) job.priority = priority->integer(0, 1000);
  unused_.take(members, {"resilientToWorkerRestart", "strategy"});
}

void TrainingInput::add_role(const Group& group) {
  if (group.count == 0) return;
  Role role{.name = group.name, .nodes = {group.count, group.count}};
  role.image = group.replica.image.empty() ? master_.replica.image : group.replica.image;
  if (role.image.empty() && (!group.replica.command.empty() || group.replica.args)) {
    const std::string key = group.name + "Config";
    throw input_.field()
        .part(*find(input_.field().value(), key), key)
        .error("containerCommand and containerArgs need an imageUri");
  }
  role.command = role.image.empty() ? module_ : group.replica.command;
  role.args = group.replica.args.value_or(args_);
  role.args.insert(role.args.end(), job_dir_.begin(), job_dir_.end());
  role.resources = group.machine->resources;
  if (group.replica.gpus) role.resources.gpus = group.replica.gpus;
  role.in_world = &group != &evaluator_;
  result_.job.roles.push_back(std::move(role));
}

/// The name of a job of the service: letters, digits and _.
std::string read_job_id(const Field& field) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kLegal =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::string id = field.text();
  const bool is_legal = !id.empty() && id.size() <= kLongestJobId &&
                        kLetters.find(id.front()) != std::string_view::npos &&
                        id.find_first_not_of(kLegal) == std::string::npos;
  if (is_legal) return id;
  throw field.error(
      fmt::format("{} is not legal: a job id has up to {} letters, digits and _, and "
                  "begins with a letter",
                  quoted_beginning(id),
                  kLongestJobId));
}

}  // namespace

FormResult read_training_input(const Field& document) {
  // A file from gcloud's command `describe` contains the state of the job, too.
  const Members members(document,
                        {"trainingInput",
                         "jobId",
                         "labels",
                         "state",
                         "createTime",
                         "startTime",
                         "endTime",
                         "errorMessage",
                         "trainingOutput",
                         "etag",
                         "jobPosition"});
  FormResult result = TrainingInput(members.need("trainingInput")).read();
  if (const auto id = members.take("jobId")) result.job.name = read_job_id(*id);
  if (const auto labels = members.take("labels")) result.job.labels = labels->texts_by_name();
  return result;
}

}  // namespace peal::launch
