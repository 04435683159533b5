// Differences between a saved state and the optimizer that loads it, one on each line of an error.
// Used by optimizer_state.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "peal/train/optim/first_names.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

using Differences = std::vector<std::string>;

/// Adds a difference if the numbers of groups differ.
void compare_group_counts(std::size_t ours, std::size_t saved, Differences& differences);

/// Adds a difference for each parameter that only one of the groups has. `number`: of the group.
void compare_parameters(const torch::optim::OptimizerParamGroup& ours,
                        const OptimizerState::Group& saved,
                        const FirstNames& names,
                        std::size_t number,
                        Differences& differences);

/// Adds a difference if the field `name` has another shape or type than its parameter.
void compare_forms(const std::string& name,
                   const torch::Tensor& saved,
                   const torch::Tensor& parameter,
                   Differences& differences);

/// Errors: usage, with a line for each difference.
void require_none(const Differences& differences);

}  // namespace peal::train
