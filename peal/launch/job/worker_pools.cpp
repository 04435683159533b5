// The form of Vertex AI: a CustomJob (displayName, jobSpec, labels), or its jobSpec alone
// (workerPoolSpecs, scheduling). Source: the API's reference (CustomJobSpec, WorkerPoolSpec).
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/printable.h"
#include "peal/launch/job/forms.h"
#include "peal/launch/job/managed.h"
#include "peal/launch/job/references.h"

namespace peal::launch {
namespace {

constexpr std::string_view kSpecPrefix = "jobSpec.";
/// Of a CustomJob, beside jobSpec. A file that `describe` has printed has its state, too.
constexpr std::array<std::string_view, 13> kJobFields = {"displayName",
                                                         "labels",
                                                         "encryptionSpec",
                                                         "name",
                                                         "state",
                                                         "createTime",
                                                         "startTime",
                                                         "endTime",
                                                         "updateTime",
                                                         "error",
                                                         "webAccessUris",
                                                         "satisfiesPzs",
                                                         "satisfiesPzi"};
constexpr std::array<std::string_view, 15> kSpecFields = {"workerPoolSpecs",
                                                          "scheduling",
                                                          "baseOutputDirectory",
                                                          "serviceAccount",
                                                          "network",
                                                          "reservedIpRanges",
                                                          "tensorboard",
                                                          "enableWebAccess",
                                                          "enableDashboardAccess",
                                                          "experiment",
                                                          "experimentRun",
                                                          "persistentResourceId",
                                                          "protectedArtifactLocationId",
                                                          "pscInterfaceConfig",
                                                          "models"};

constexpr std::size_t kMostPools = 4;
constexpr std::size_t kServers = 2;  // the pool of parameter servers and reduction servers
constexpr std::size_t kEvaluators = 3;

/// The text about the program in CLUSTER_SPEC, as JSON.
struct Program {
  std::string module{};
  std::vector<std::string> packages{};
  std::vector<std::string> args{};
  std::string json() const {
    return nlohmann::ordered_json{
        {"python_module", module}, {"package_uris", packages}, {"job_args", args}}
        .dump();
  }
};

class WorkerPools final {
 public:
  WorkerPools(const Members& spec, Unused& unused) : spec_(spec), unused_(unused) {}

  Job read();

 private:
  void read_pool(const Field& field, std::size_t index);
  void read_machine(const Members& pool, Role& role);
  void read_container(const Field& field, Role& role);
  void read_package(const Field& field, Role& role);
  void read_scheduling();
  void read_output();

  const Members& spec_;
  Unused& unused_;
  Program program_{};  // of the first pool
  Job job_{};
};

/// [{name, value}], in the order in which they are set.
std::map<std::string, std::string> read_env(const Field& field) {
  std::vector<std::pair<std::string, std::string>> variables;
  std::set<std::string> names;
  for (const Field& item : field.items()) {
    const Members members(item, {"name", "value"});
    const Field name = members.need("name");
    const auto value = members.take("value");
    variables.emplace_back(name.text(), value ? value->text() : "");
    if (!names.insert(variables.back().first).second) {
      throw name.error(fmt::format("the variable {} is here twice; remove one",
                                   quoted_beginning(variables.back().first)));
    }
  }
  std::map<std::string, std::string> env;
  const auto is_later = [&](const std::string& name) {
    return names.contains(name) && !env.contains(name);
  };
  for (const auto& [name, value] : variables) {
    std::string escaped = escape_references(value, is_later);
    env[name] = std::move(escaped);
  }
  return env;
}

std::vector<std::string_view> with(std::span<const std::string_view> fields,
                                   std::vector<std::string_view> more) {
  more.insert(more.end(), fields.begin(), fields.end());
  return more;
}

/// An empty map, or nothing at all, skips a pool.
bool is_skipped(const Field& field) {
  return field.is(Value::Kind::kNull) ||
         (field.is(Value::Kind::kMap) && field.value().members.empty());
}

Job WorkerPools::read() {
  job_.form = JobForm::kWorkerPoolSpecs;
  job_.success_role = "workerpool0";
  const Field pools = spec_.need("workerPoolSpecs");
  const std::vector<Field> items = pools.items();
  if (items.empty() || is_skipped(items.front())) {
    throw pools.error("the first pool, which has the primary replica, is missing");
  }
  if (items.size() > kMostPools) {
    throw pools.error(
        fmt::format("there are {} pools, and only {} kinds", items.size(), kMostPools));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_skipped(items[i])) read_pool(items[i], i);
  }
  read_scheduling();
  read_output();
  unused_.take(spec_,
               {"serviceAccount",
                "network",
                "reservedIpRanges",
                "tensorboard",
                "enableWebAccess",
                "enableDashboardAccess",
                "experiment",
                "experimentRun",
                "persistentResourceId",
                "protectedArtifactLocationId",
                "pscInterfaceConfig",
                "models"});
  job_.document = program_.json();
  return std::move(job_);
}

void WorkerPools::read_pool(const Field& field, std::size_t index) {
  if (index == kServers) {
    throw field.error(
        "peal has no parameter servers and no reduction servers, because all_reduce "
        "needs none; write {} for this pool");
  }
  const Members pool(field,
                     {"machineSpec",
                      "replicaCount",
                      "diskSpec",
                      "containerSpec",
                      "pythonPackageSpec",
                      "nfsMounts",
                      "lustreMounts"});
  Role role{.name = fmt::format("workerpool{}", index)};
  role.in_world = index != kEvaluators;
  if (const auto count = pool.take("replicaCount")) {
    const int nodes = count->integer(0, kMostManagedNodes);
    if (index == 0 && nodes != 1) throw count->error("the first pool has exactly 1 replica");
    if (nodes == 0) throw count->error("a pool without replicas is skipped by {}");
    role.nodes = {nodes, nodes};
  }
  read_machine(pool, role);
  const auto container = pool.take("containerSpec");
  const auto package = pool.take("pythonPackageSpec");
  if (container.has_value() == package.has_value()) {
    throw field.error("a pool has containerSpec or pythonPackageSpec, and not both");
  }
  if (container) read_container(*container, role);
  if (package) read_package(*package, role);
  for (const char* const mounts : {"nfsMounts", "lustreMounts"}) {
    refuse(pool, mounts, "peal mounts nothing; mount the share on the hosts, and remove the field");
  }
  unused_.take(pool, {"diskSpec"});
  job_.roles.push_back(std::move(role));
}

void WorkerPools::read_machine(const Members& pool, Role& role) {
  const auto field = pool.take("machineSpec");
  if (!field) return;
  const Members machine(
      *field,
      {"machineType", "acceleratorType", "acceleratorCount", "tpuTopology", "reservationAffinity"});
  if (const auto type = machine.take("machineType")) {
    role.resources = read_machine_type(*type).resources;
  }
  const auto gpus = read_accelerators(machine, "acceleratorType", "acceleratorCount");
  if (gpus) role.resources.gpus = gpus;
  refuse(machine, "tpuTopology", "peal has no TPUs; remove the field");
  unused_.take(machine, {"reservationAffinity"});
}

void WorkerPools::read_container(const Field& field, Role& role) {
  const Members container(field, {"imageUri", "command", "args", "env"});
  role.image = container.need("imageUri").filled_text();
  if (const auto command = container.take("command")) role.command = command->texts();
  if (const auto args = container.take("args")) role.args = args->texts();
  if (const auto env = container.take("env")) role.env = read_env(*env);
}

void WorkerPools::read_package(const Field& field, Role& role) {
  const Members package(field, {"executorImageUri", "pythonModule", "packageUris", "args", "env"});
  role.image = package.need("executorImageUri").filled_text();
  const std::string module = package.need("pythonModule").text();
  role.command = {"python3", "-m", module};
  if (const auto args = package.take("args")) role.args = args->texts();
  if (const auto env = package.take("env")) role.env = read_env(*env);
  const bool is_first = job_.roles.empty();
  if (const auto uris = package.take("packageUris")) {
    Packages read = read_packages(*uris);
    for (JobFile& file : read.files) {
      const bool is_known = std::ranges::count(job_.files, file) > 0;  // of an earlier pool
      if (!is_known) job_.files.push_back(std::move(file));
    }
    if (!read.python_path.empty()) role.env.try_emplace("PYTHONPATH", read.python_path);
    if (is_first) program_.packages = uris->texts();
  }
  if (is_first) {
    program_.module = module;
    program_.args = role.args;
  }
}

void WorkerPools::read_scheduling() {
  job_.max_run_time = kManagedRunTime;
  job_.restarts.most = kManagedRestarts;
  const auto field = spec_.take("scheduling");
  if (!field) return;
  const Members members(
      *field,
      {"timeout", "maxWaitDuration", "disableRetries", "restartJobOnWorkerRestart", "strategy"});
  if (const auto time = members.take("timeout")) job_.max_run_time = time->seconds();
  if (const auto time = members.take("maxWaitDuration")) {
    // For the service, 0 means no limit.
    if (time->seconds().count() > 0) job_.start_timeout = time->seconds();
  }
  const auto no_retries = members.take("disableRetries");
  if (no_retries && no_retries->flag()) job_.restarts.most = 0;
  unused_.take(members, {"restartJobOnWorkerRestart", "strategy"});
}

/// The folders for the results of the program.
void WorkerPools::read_output() {
  const auto field = spec_.take("baseOutputDirectory");
  if (!field) return;
  const Members members(*field, {"outputUriPrefix"});
  std::string prefix = members.need("outputUriPrefix").text();
  while (prefix.ends_with('/')) prefix.pop_back();
  job_.env["AIP_MODEL_DIR"] = prefix + "/model/";
  job_.env["AIP_CHECKPOINT_DIR"] = prefix + "/checkpoints/";
  job_.env["AIP_TENSORBOARD_LOG_DIR"] = prefix + "/logs/";
}

}  // namespace

FormResult read_worker_pools(const Field& document) {
  const bool has_spec = find(document.value(), "jobSpec") != nullptr;
  std::vector<std::string_view> keys = with(kJobFields, {"jobSpec"});
  if (!has_spec) keys = with(kJobFields, with(kSpecFields, {}));
  const Members members(document, std::move(keys));
  Unused unused;
  unused.take(members, {"encryptionSpec"});
  FormResult result;
  if (has_spec) {
    const Members spec(members.need("jobSpec"), with(kSpecFields, {}));
    result.job = WorkerPools(spec, unused).read();
  } else {
    result.job = WorkerPools(members, unused).read();
  }
  if (const auto name = members.take("displayName")) result.job.name = name->text();
  if (const auto labels = members.take("labels")) result.job.labels = labels->texts_by_name();
  result.unused = unused.names(kSpecPrefix);
  return result;
}

}  // namespace peal::launch
