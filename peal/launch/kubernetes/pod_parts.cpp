#include "peal/launch/kubernetes/pod_parts.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/names.h"

namespace peal::launch::kubernetes {
namespace {

constexpr std::size_t kLargestSecret = 1'000'000;  // Kubernetes takes 1 MiB, with some overhead

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

Json secret(const Job& job, const ManifestOptions& options, const std::vector<Process>& processes) {
  std::map<std::string, std::string> all;
  for (const Process& process : processes) {
    all.insert(process.secret_texts.begin(), process.secret_texts.end());
  }
  std::size_t bytes = 0;
  Json texts = Json::object();
  for (const auto& [key, text] : all) {
    texts[key] = text;
    bytes += key.size() + text.size();
  }
  if (bytes > kLargestSecret) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the environment has {} bytes, and a Secret of Kubernetes at most {}: "
                            "put large values into the image or a volume",
                            bytes,
                            kLargestSecret));
  }
  Json object = {{"apiVersion", "v1"}, {"kind", "Secret"}};
  object["metadata"] = metadata(job_name(options.id), job, options);
  object["type"] = "Opaque";
  object["immutable"] = true;
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

void set_process(Json& container, const Process& process) {
  if (!process.command.empty()) container["command"] = process.command;
  if (!process.args.empty()) container["args"] = process.args;
  container["env"] = process.env;
}

}  // namespace peal::launch::kubernetes
