// The same values on all ranks: parameters, the state of an optimizer, and other values. For
// training programs, by peal/horovod.h.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include "peal/train/horovod/operations.h"

namespace peal::hvd {

using NamedTensors = torch::OrderedDict<std::string, Tensor>;

/// tensor = tensor of the root, for each tensor, in place.
/// Order: called by all ranks of the set; tensors may be in any order.
/// Errors: those of broadcast_.
void broadcast_parameters(const NamedTensors& parameters,
                          Rank root_rank,
                          const ProcessSet& process_set = global_process_set);
/// The parameters and buffers of the module.
void broadcast_parameters(const torch::nn::Module& module,
                          Rank root_rank,
                          const ProcessSet& process_set = global_process_set);

/// The optimizer gets the options and the state of the root's optimizer: counters and tensors too.
/// No step is made, so parameters do not change. Parameters without a gradient get a gradient of
/// zeros. Ranks may have a state or none.
/// Order: called by all ranks of the set. The optimizers have the same groups and parameters, in
///   the same order.
/// Errors: usage (LBFGS; the groups differ from those of the root), unsupported (an optimizer that
///   is not of LibTorch), those of broadcast.
void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               Rank root_rank,
                               const ProcessSet& process_set = global_process_set);

/// The root's bytes, on every rank of the set. Other ranks may pass any.
/// Cost: 2 broadcasts.
std::string broadcast_bytes(const std::string& bytes,
                            Rank root_rank,
                            const OperationOptions& options = {});

/// The bytes of each rank of the set, by rank, on every rank.
/// Cost: 2 allgathers.
std::vector<std::string> allgather_bytes(const std::string& bytes,
                                         const OperationOptions& options = {});

/// The root's value, on every rank of the set: a value without pointers.
template <class Value>
requires std::is_trivially_copyable_v<Value> Value
broadcast_value(const Value& value, Rank root_rank, const OperationOptions& options = {}) {
  const std::string bytes = broadcast_bytes(
      std::string(reinterpret_cast<const char*>(&value), sizeof value), root_rank, options);
  Value received = value;
  std::memcpy(&received, bytes.data(), sizeof received);
  return received;
}

}  // namespace peal::hvd
