#include "peal/launch/job/machine_types.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "peal/base/difference.h"

namespace peal::launch {
namespace {

/// Machines that differ in size only: "n1-standard-4" has 4 CPUs.
struct Family {
  std::string_view prefix;
  double gb_per_cpu;
  std::array<int, 12> cpus;  // the sizes; 0: no more
};
constexpr std::array kFamilies = {
    Family{"n1-standard-", 3.75, {1, 2, 4, 8, 16, 32, 64, 96}},
    Family{"n1-highmem-", 6.5, {2, 4, 8, 16, 32, 64, 96}},
    Family{"n1-highcpu-", 0.9, {2, 4, 8, 16, 32, 64, 96}},
    Family{"e2-standard-", 4, {2, 4, 8, 16, 32}},
    Family{"e2-highmem-", 8, {2, 4, 8, 16}},
    Family{"e2-highcpu-", 1, {2, 4, 8, 16, 32}},
    Family{"n2-standard-", 4, {2, 4, 8, 16, 32, 48, 64, 80, 96, 128}},
    Family{"n2-highmem-", 8, {2, 4, 8, 16, 32, 48, 64, 80, 96}},
    Family{"n2-highcpu-", 1, {2, 4, 8, 16, 32, 48, 64, 80, 96}},
    Family{"n2d-standard-", 4, {2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224}},
    Family{"n2d-highmem-", 8, {2, 4, 8, 16, 32, 48, 64, 80, 96}},
    Family{"n2d-highcpu-", 1, {2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224}},
    Family{"c2-standard-", 4, {4, 8, 16, 30, 60}},
    Family{"c2d-standard-", 4, {2, 4, 8, 16, 32, 56, 112}},
    Family{"c2d-highmem-", 8, {2, 4, 8, 16, 32, 56, 112}},
    Family{"c2d-highcpu-", 2, {2, 4, 8, 16, 32, 56, 112}},
};

/// Machines with their own figures.
struct Fixed {
  std::string_view name;
  int cpus;
  double gb;
  int gpus;
};
constexpr std::array kComputeEngine = {
    Fixed{"m1-ultramem-40", 40, 961, 0},    Fixed{"m1-ultramem-80", 80, 1922, 0},
    Fixed{"m1-ultramem-160", 160, 3844, 0}, Fixed{"m1-megamem-96", 96, 1433.6, 0},
    Fixed{"a2-highgpu-1g", 12, 85, 1},      Fixed{"a2-highgpu-2g", 24, 170, 2},
    Fixed{"a2-highgpu-4g", 48, 340, 4},     Fixed{"a2-highgpu-8g", 96, 680, 8},
    Fixed{"a2-megagpu-16g", 96, 1360, 16},  Fixed{"a2-ultragpu-1g", 12, 170, 1},
    Fixed{"a2-ultragpu-2g", 24, 340, 2},    Fixed{"a2-ultragpu-4g", 48, 680, 4},
    Fixed{"a2-ultragpu-8g", 96, 1360, 8},   Fixed{"a3-highgpu-8g", 208, 1872, 8},
    Fixed{"a3-megagpu-8g", 208, 1872, 8},   Fixed{"g2-standard-4", 4, 16, 1},
    Fixed{"g2-standard-8", 8, 32, 1},       Fixed{"g2-standard-12", 12, 48, 1},
    Fixed{"g2-standard-16", 16, 64, 1},     Fixed{"g2-standard-24", 24, 96, 2},
    Fixed{"g2-standard-32", 32, 128, 1},    Fixed{"g2-standard-48", 48, 192, 4},
    Fixed{"g2-standard-96", 96, 384, 8},
};

/// The older names of AI Platform, and the machines that the service used for them.
struct Legacy {
  std::string_view name;
  std::string_view machine;
  int gpus;
};
constexpr std::array kLegacy = {
    Legacy{"standard", "n1-standard-4", 0},
    Legacy{"large_model", "n1-highmem-8", 0},
    Legacy{"complex_model_s", "n1-highcpu-8", 0},
    Legacy{"complex_model_m", "n1-highcpu-16", 0},
    Legacy{"complex_model_l", "n1-highcpu-32", 0},
    Legacy{"standard_gpu", "n1-standard-8", 1},
    Legacy{"complex_model_m_gpu", "n1-standard-16", 4},
    Legacy{"complex_model_l_gpu", "n1-standard-32", 8},
    Legacy{"standard_p100", "n1-standard-8", 1},
    Legacy{"complex_model_m_p100", "n1-standard-16", 4},
    Legacy{"standard_v100", "n1-standard-8", 1},
    Legacy{"large_model_v100", "n1-highmem-8", 1},
    Legacy{"complex_model_m_v100", "n1-standard-16", 4},
    Legacy{"complex_model_l_v100", "n1-standard-32", 8},
};
constexpr std::string_view kTpu = "cloud_tpu";
constexpr std::string_view kTpuPrefix = "ct";  // ct5lp-hightpu-4t

Resources resources(int cpus, double gb, int gpus) {
  Resources made{.cpus = cpus, .memory = static_cast<std::int64_t>(gb * 1024) * 1_MiB};
  if (gpus > 0) made.gpus = gpus;
  return made;
}

std::optional<Resources> in_family(std::string_view name) {
  for (const Family& family : kFamilies) {
    for (const int cpus : family.cpus) {
      if (cpus > 0 && name == fmt::format("{}{}", family.prefix, cpus)) {
        return resources(cpus, family.gb_per_cpu * cpus, 0);
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    for (const int cpus : family.cpus) {
      if (cpus > 0) names.push_back(fmt::format("{}{}", family.prefix, cpus));
    }
  }
  for (const Fixed& machine : kComputeEngine) names.emplace_back(machine.name);
  for (const Legacy& machine : kLegacy) names.emplace_back(machine.name);
  return names;
}

}  // namespace

std::optional<MachineType> machine_type(std::string_view name) {
  if (const auto found = in_family(name)) return MachineType{.resources = *found};
  const auto* const fixed = std::ranges::find(kComputeEngine, name, &Fixed::name);
  if (fixed != kComputeEngine.end()) {
    return MachineType{.resources = resources(fixed->cpus, fixed->gb, fixed->gpus)};
  }
  const auto* const legacy = std::ranges::find(kLegacy, name, &Legacy::name);
  if (legacy != kLegacy.end()) {
    MachineType machine{.names = MachineNames::kLegacy, .resources = *in_family(legacy->machine)};
    if (legacy->gpus > 0) machine.resources.gpus = legacy->gpus;
    return machine;
  }
  if (name == kTpu) return MachineType{.names = MachineNames::kLegacy, .is_tpu = true};
  if (name.starts_with(kTpuPrefix) && name.find("tpu-") != std::string_view::npos) {
    return MachineType{.is_tpu = true};
  }
  return std::nullopt;
}

std::string nearest_machine_type(std::string_view name) {
  const std::vector<std::string> names = known_names();
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(nearest_word(name, views));
}

}  // namespace peal::launch
