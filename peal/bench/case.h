// One thing to measure: an operation on so many bytes between so many ranks; and where it has its
// data. Made from the command line, and told to the workers.
#pragma once

#include <string>

#include "peal/base/dtype.h"
#include "peal/base/units.h"
#include "peal/bench/op.h"

namespace peal::bench {

/// Where a rank's own block is asked to lie. all_reduce, broadcast and reduce have one buffer, and
/// are always in place; all_to_all and send_recv never are.
enum class Place : unsigned char {
  kOut,  // in a buffer of its own
  kIn,   // inside the buffer that holds all blocks
};

struct Case {
  Op op = Op::kAllReduce;
  DType dtype = DType::kF32;
  int ranks = 2;
  Elements count;  // of a block, where there are blocks; else of the buffer
  Place place = Place::kOut;
  friend bool operator==(const Case&, const Case&) = default;
};

/// The root of broadcast, reduce, gather and scatter.
inline constexpr Rank kRoot = 0;

/// The smallest case with at least `bytes` (see bytes_of): one element in each block at least.
Case make_case(Op op, DType dtype, int ranks, Bytes bytes, Place place);

/// All blocks together, where there are blocks; else the buffer.
Elements whole_count(const Case&);
/// The size that is reported: that of whole_count. all_reduce, broadcast, reduce, send_recv: of the
/// buffer. all_gather, gather: of the whole output. reduce_scatter, scatter: of the whole input.
/// all_to_all: of a rank's input. barrier: 0.
Bytes bytes_of(const Case&);
/// "all_reduce of 65536 B of f32 on 2 ranks"
std::string describe(const Case&);

/// What a rank gives: 0 where it gives nothing, as receivers of a broadcast.
Elements input_count(const Case&, Rank rank);
/// What a rank gets: 0 where it gets nothing.
Elements output_count(const Case&, Rank rank);
/// Where input and output share one memory, they begin there, and it holds the larger of both.
enum class Sharing : unsigned char { kApart, kOneMemory };
struct Placement {
  Sharing sharing = Sharing::kApart;
  Elements input = {};
  Elements output = {};
};
Placement placement(const Case&, Rank rank);
/// Whether the root has input and output in one memory: of some operations always, or never,
/// whatever is asked.
Place place_of(const Case&);

}  // namespace peal::bench
