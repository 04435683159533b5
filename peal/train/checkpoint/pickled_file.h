// Files of Python's torch.save: a state_dict, or dicts with tensors.
#pragma once

#include <filesystem>

#include "peal/train/checkpoint/tensor_map.h"

namespace peal::train {

/// The tensors that are in the dicts, OrderedDicts, lists and tuples of the file, on the CPU. Names
/// join the keys with a dot: {"model": net.state_dict()} has "model.conv.weight". Reads the pickle
/// as data, and calls nothing. Leaves out numbers, texts and objects of other classes. Tensors that
/// share memory in Python share it here, too.
/// Errors: resource (no such file; not a file of torch.save since torch 1.6, or damaged),
///   unsupported (an archive of TorchScript, as of torch::save in C++; a type that peal does not
///   read; bytes in the other order). The text begins with the path.
/// Cost: memory for all storages of the file.
TensorMap load_pickled_tensors(const std::filesystem::path& path);

}  // namespace peal::train
