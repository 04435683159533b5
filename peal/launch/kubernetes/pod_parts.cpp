#include "peal/launch/kubernetes/pod_parts.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/variables.h"

namespace peal::launch::kubernetes {
namespace {

std::string quantity(Bytes bytes) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 3> kUnits = {
      {{std::int64_t{1} << 30, "Gi"},
       {std::int64_t{1} << 20, "Mi"},
       {std::int64_t{1} << 10, "Ki"}}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes.value >= size && bytes.value % size == 0) {
      return fmt::format("{}{}", bytes.value / size, unit);
    }
  }
  return fmt::format("{}", bytes.value);
}

std::string quantity(double cores) {
  const auto thousandths = static_cast<std::int64_t>(std::ceil(cores * 1000));
  return thousandths % 1000 == 0 ? fmt::format("{}", thousandths / 1000)
                                 : fmt::format("{}m", thousandths);
}

Json unexpanded_words(const std::vector<std::string>& words) {
  Json list = Json::array();
  for (const std::string& word : words) list.push_back(unexpanded(word));
  return list;
}

}  // namespace

Json labels_of(const Job& job, const ManifestOptions& options) {
  Json labels = {{kJobLabel, job_name(options.id)}};
  for (const auto& [key, value] : job.labels) labels[key] = value;
  return labels;
}

Json metadata(const std::string& name, const Job& job, const ManifestOptions& options) {
  Json result = {{"name", name}};
  if (!options.job_namespace.empty()) result["namespace"] = options.job_namespace;
  result["labels"] = labels_of(job, options);
  result["annotations"] = {{kIdAnnotation, options.id}};
  return result;
}

Json secret(const Job& job, const ManifestOptions& options) {
  Json object = {{"apiVersion", "v1"}, {"kind", "Secret"}};
  object["metadata"] = metadata(job_name(options.id), job, options);
  object["type"] = "Opaque";
  object["immutable"] = true;
  Json texts = Json::object();
  for (const auto& [key, text] : secret_texts(job, options)) texts[key] = text;
  object["stringData"] = texts;
  return object;
}

Json resources(const Resources& needs) {
  Json limits = Json::object();
  if (needs.cpus) limits["cpu"] = quantity(*needs.cpus);
  if (needs.memory) limits["memory"] = quantity(*needs.memory);
  if (needs.gpus.value_or(0) > 0) limits["nvidia.com/gpu"] = fmt::format("{}", *needs.gpus);
  if (limits.empty()) return Json::object();
  return {{"limits", limits}, {"requests", limits}};
}

Json shared_memory(const Resources& needs) {
  Json folder = {{"medium", "Memory"}};
  if (needs.shm) {
    folder["sizeLimit"] = quantity(*needs.shm);
  } else if (needs.memory) {
    folder["sizeLimit"] = quantity(*needs.memory / 2);
  }
  return {{"name", "shm"}, {"emptyDir", folder}};
}

void set_words(Json& container,
               const Job& job,
               const Role& role,
               const std::vector<std::string>& exports) {
  const bool is_wrapped = !exports.empty() || role.ranks_per_node > 1;
  if (is_wrapped) {
    container["command"] = unexpanded_words(words_behind_shell(job, role, exports));
    return;
  }
  if (!role.command.empty()) container["command"] = unexpanded_words(role.command);
  if (!role.args.empty()) container["args"] = unexpanded_words(role.args);
}

}  // namespace peal::launch::kubernetes
