// What the two managed forms (training_input.cpp, worker_pools.cpp) have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/field.h"
#include "peal/launch/job/job.h"
#include "peal/launch/job/machine_types.h"

namespace peal::launch {

/// The services end a job after a week unless it says something else, and run a failed job again
/// three times.
inline constexpr auto kManagedRunTime = std::chrono::seconds(604'800);
inline constexpr int kManagedRestarts = 3;
inline constexpr int kMostManagedNodes = 1'000;

/// Collects the fields that have no meaning here, for one line.
class Unused final {
 public:
  /// Takes the fields with these keys.
  void take(Members& members, const std::vector<std::string_view>& keys);
  /// "not used here: region, masterConfig.diskConfig"; nothing if there are none. Paths are shown
  /// without `prefix`.
  std::vector<std::string> notices(std::string_view prefix) const;

 private:
  std::vector<std::string> paths_{};
};

/// Errors: usage for an unknown name, and for TPUs.
MachineType read_machine_type(const Field& field);

/// The GPUs of a machine: `count` of `type`. The reason of an error says what is legal.
/// Errors: usage: TPUs, a type that is not of NVIDIA, one field without the other.
std::optional<int> read_accelerators(Members& members,
                                     std::string_view type,
                                     std::string_view count);

/// Packages that a Python program needs.
struct Packages {
  std::vector<JobFile> files{};
  std::string python_path{};  // for PYTHONPATH
};

/// Reads packageUris: wheels, archives (.zip, .egg) and folders on this machine. They are copied to
/// packages/ on the nodes. Errors: usage: URIs in the cloud, archives that Python cannot import.
Packages read_packages(const Field& field);

/// The error for a field that cannot be honoured.
void refuse(Members& members, std::string_view key, std::string_view reason);

}  // namespace peal::launch
