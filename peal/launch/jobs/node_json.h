// A node of a job as JSON: in the records, and for users of `peal status --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "peal/launch/runner.h"

namespace peal::launch::jobs {

/// "exit_code" is null if it is not known. Pure.
nlohmann::ordered_json json_of(const NodeStatus& node);

}  // namespace peal::launch::jobs
