// The order of samples, for samplers and the partitioner. Each rank computes it: with the same
// arguments all ranks get the same order without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace peal::train::data {

/// 0 .. size - 1, each once. The order depends only on (size, seed, epoch), on every machine.
/// Cost: size steps.
/// Source: Fisher and Yates; Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P.
std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch = 0);

}  // namespace peal::train::data
