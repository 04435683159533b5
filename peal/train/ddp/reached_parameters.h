// Which parameters the backward passes of a window have reached. Used by GradientReducer.
#pragma once

#include <span>
#include <string>

#include "peal/train/ddp/pass_status.h"
#include "peal/train/ddp/trained_parameter.h"

namespace peal::train {

/// Stores in the status which parameters this rank has reached, and how. Call it before the sum.
void set_reached(PassStatus& status, std::span<const TrainedParameter> parameters);

/// The parameters that not every rank with data has reached: "conv.weight",
/// "conv.weight and 3 more" or "conv.weight on another rank". Those that this rank has not reached
/// go first. Empty if there are none. Call it after the sum.
std::string unreached(const PassStatus& status, std::span<const TrainedParameter> parameters);

}  // namespace peal::train
