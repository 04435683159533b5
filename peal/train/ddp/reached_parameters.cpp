#include "peal/train/ddp/reached_parameters.h"

#include <cstddef>
#include <vector>

#include <torch/torch.h>

namespace peal::train {
namespace {

std::string listed(const std::vector<std::string>& names) {
  const std::size_t others = names.size() - 1;
  return others == 0 ? names.front() : c10::str(names.front(), " and ", others, " more");
}

}  // namespace

void set_reached(PassStatus& status, std::span<const TrainedParameter> parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].window.reached) continue;
    const torch::Tensor& gradient = parameters[i].tensor.grad();
    const bool is_sparse = gradient.defined() && gradient.is_sparse();
    status.set_reached(i, is_sparse ? PassStatus::Gradient::kSparse : PassStatus::Gradient::kDense);
  }
}

std::string unreached(const PassStatus& status, std::span<const TrainedParameter> parameters) {
  std::vector<std::string> here, elsewhere;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (status.reached(i) == status.active_ranks()) continue;
    (parameters[i].window.reached ? elsewhere : here).push_back(parameters[i].name);
  }
  if (!here.empty()) return listed(here);
  return elsewhere.empty() ? std::string() : listed(elsewhere) + " on another rank";
}

}  // namespace peal::train
