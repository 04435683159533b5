// One case to measure: an operation, its size, its ranks, and the place of its data. Made from the
// command line, and sent to the workers.
#pragma once

#include <string>

#include "peal/base/dtype.h"
#include "peal/base/units.h"
#include "peal/bench/op.h"

namespace peal::bench {

/// The requested place of a rank's block. all_reduce, broadcast and reduce have one buffer and are
/// always in place; all_to_all and send_recv are never in place.
enum class BlockPlace : unsigned char {
  kOut,  // in a separate buffer
  kIn,   // inside the buffer that holds all blocks
};

struct Case {
  Op op = Op::kAllReduce;
  DType dtype = DType::kF32;
  int ranks = 2;
  Elements count;  // of a block, for operations with blocks; else of the buffer
  BlockPlace place = BlockPlace::kOut;
  friend bool operator==(const Case&, const Case&) = default;
};

/// The root of broadcast, reduce, gather and scatter.
inline constexpr Rank kRoot = 0;

/// The smallest case with at least `bytes` (see bytes_of), and at least one element in each block.
Case make_case(Op op, DType dtype, int ranks, Bytes bytes, BlockPlace place);

/// The elements of all blocks together, for operations with blocks; else of the buffer.
Elements whole_count(const Case&);
/// The reported size, that of whole_count: of the buffer for all_reduce, broadcast, reduce and
/// send_recv; of the whole output for all_gather and gather; of the whole input for reduce_scatter
/// and scatter; of a rank's input for all_to_all; 0 for barrier.
Bytes bytes_of(const Case&);
/// "all_reduce of 65536 B of f32 on 2 ranks"
std::string describe(const Case&);

/// The elements of a rank's input; 0 without an input, as for receivers of a broadcast.
Elements input_count(const Case&, Rank rank);
/// The elements of a rank's output; 0 without an output.
Elements output_count(const Case&, Rank rank);
/// If input and output share memory, the memory holds the larger of both, and `input` and `output`
/// are their offsets in it.
enum class Sharing : unsigned char { kApart, kOneMemory };
struct Placement {
  Sharing sharing = Sharing::kApart;
  Elements input = {};
  Elements output = {};
};
Placement placement(const Case&, Rank rank);
/// Whether the root has input and output in one memory. For some operations this is always or never
/// so, for any requested place.
BlockPlace place_of(const Case&);

}  // namespace peal::bench
