// What the two managed forms (training_input.cpp, worker_pools.cpp) have in common.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/field.h"
#include "peal/launch/job/job.h"
#include "peal/launch/job/machine_types.h"

namespace peal::launch {

/// Defaults of the services: they end a job after a week, and restart a failed job three times.
inline constexpr auto kManagedRunTime = std::chrono::seconds(604'800);
inline constexpr int kManagedRestarts = 3;
inline constexpr int kMostManagedNodes = 1'000;

/// Collects the fields that have no meaning here, for one line.
class Unused final {
 public:
  /// Takes the fields with these keys.
  void take(const Members& members, const std::vector<std::string_view>& keys);
  /// "region", "masterConfig.diskConfig", or the option that has set the field. Paths are without
  /// `prefix`.
  std::vector<std::string> names(std::string_view prefix) const;

 private:
  std::vector<Field> fields_{};
};

/// Errors: usage for an unknown name, and for TPUs.
MachineType read_machine_type(const Field& field);

/// The number of GPUs of a machine. `type`, `count`: the keys of the two fields. `types`: the legal
/// types. If it is empty, all names that begin with NVIDIA_ are legal, because Vertex AI still gets
/// new types.
/// Errors: usage: TPUs, an unknown type, one field without the other.
std::optional<int> read_accelerators(const Members& members,
                                     std::string_view type,
                                     std::string_view count,
                                     std::span<const std::string_view> types = {});

/// Packages that a Python program needs.
struct Packages {
  std::vector<JobFile> files{};
  std::string python_path{};  // for PYTHONPATH
};

/// Reads packageUris: wheels, archives (.zip, .egg) and folders on this machine. They are copied to
/// packages/ on the nodes. Errors: usage: URIs in the cloud, archives that Python cannot import.
Packages read_packages(const Field& field);

/// Throws the error for a field that peal cannot support, if the field is there.
void refuse(const Members& members, std::string_view key, std::string_view reason);

}  // namespace peal::launch
