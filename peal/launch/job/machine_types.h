// The machine types of Google's training services as resources. Called by the readers of the
// managed forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/launch/job/job.h"

namespace peal::launch {

/// AI Platform has two kinds of names, which a job must not mix.
enum class MachineNames : unsigned char { kLegacy, kComputeEngine };

struct MachineType {
  MachineNames names = MachineNames::kComputeEngine;
  Resources resources{};
  bool is_tpu = false;
  friend bool operator==(const MachineType&, const MachineType&) = default;
};

/// The machine with this name, as "n1-standard-4" or "complex_model_m"; nothing if it is unknown.
/// "GB" in the services' tables is 2^30 bytes.
std::optional<MachineType> machine_type(std::string_view name);

/// The known name that is most like `name`; empty if none is.
std::string nearest_machine_type(std::string_view name);

}  // namespace peal::launch
