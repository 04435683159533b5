// What the ranks of an operation by name must agree on: a value that each rank sends to the others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/serialize.h"
#include "peal/base/units.h"

namespace peal::named {

/// The numbers are part of the wire format: append, never reorder.
enum class Kind : std::uint8_t {
  kAllReduce = 0,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kBarrier,
  kAgreement,  // moves no data: the ranks compare `detail`
};

/// "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier", "agreement".
std::string_view name_of(Kind kind);
/// The same in capitals, as in timelines.
std::string_view capitals_of(Kind kind);

/// How all-reduce and reduce-scatter combine the values of the ranks. The numbers are part of the
/// wire format: append, never reorder.
enum class Reduction : std::uint8_t { kAverage = 0, kSum, kMin, kMax, kProduct, kAdasum };

/// "Average", "Sum", "Min", "Max", "Product", "Adasum".
std::string_view name_of(Reduction reduction);

struct Request {
  std::string name;  // unique among the operations in flight of a NamedOperations
  Kind kind = Kind::kAllReduce;
  DType dtype = DType::kF32;
  Reduction reduction = Reduction::kSum;
  /// Of kAllGather and kAllToAll, the first dimension may differ between ranks.
  std::vector<std::int64_t> shape;
  Rank root = 0;  // of the group
  double prescale = 1.0;
  double postscale = 1.0;
  /// Operations that start together have the same group name. Empty: the operation is alone.
  std::string group;
  int group_size = 1;
  std::string detail;
  /// Whether the ranks remember the operation. Not useful for a name that is used once.
  bool remembered = true;

  friend bool operator==(const Request&, const Request&) = default;
};

/// The number of elements of the shape.
Elements elements_of(const Request& request);
/// The number of elements in a row: of all dimensions but the first.
Elements row_elements_of(const Request& request);
/// The first dimension. 1 if the shape is empty.
std::int64_t rows_of(const Request& request);

/// A name, a group name or a detail may have this many bytes.
inline constexpr Bytes kLongestText = 64_KiB;

/// The operation for errors and reports: `allreduce "x"` if the name is "x" or "allreduce.x".
std::string describe(const Request& request);

/// Whether an operation of two ranks with these requests can run.
bool agree(const Request& a, const Request& b);

/// Ranks that have the same value of something on which all ranks must agree.
struct Side {
  std::string value;
  std::vector<Rank> ranks;
};

/// "ranks 0 and 1 have f32, but rank 2 has f64", "rank 0 has f32, rank 1 has f64, and rank 2 has
/// i32". At least two sides.
std::string sides_text(std::span<const Side> sides);

/// The first difference, with all sides and their ranks, as in: Mismatched data types of
/// allreduce.x: rank 0 has f32, but ranks 1 and 2 have f64. Empty if all agree.
/// `requests`: by rank of the group; null for ranks that have joined. `global_ranks`: for the text.
std::string difference(std::span<const Request* const> requests,
                       std::span<const Rank> global_ranks);

/// "rank 0", "ranks 0 and 2", "ranks 0, 1 and 2".
std::string ranks_text(std::span<const Rank> ranks);

/// The bytes of the memory of `elements_of`.
Bytes bytes_of(const Request& request);

void write(const Request& request, ByteWriter& out);
/// Errors: mismatch (the bytes are malformed).
Request read_request(ByteReader& in);

}  // namespace peal::named
