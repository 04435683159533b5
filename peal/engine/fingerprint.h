// A description of the operation that a rank is in, by which ranks notice that they are in
// different operations. It is sent before an operation's first bytes on each link, and posted in
// the window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "peal/base/dtype.h"
#include "peal/base/error.h"
#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/transport/window/window.h"

namespace peal::engine {

/// A value. Equal on all ranks of a correct program.
struct Fingerprint {
  std::uint64_t sequence = 0;  // 1 for the group's first collective
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp::Kind reduce = ReduceOp::Kind::kSum;
  std::uint8_t algorithm = 0;  // index in plan::algorithms()
  Rank root = 0;
  Elements count;
  /// Hash of everything else that must agree: the counts of all blocks, the size of the stage, and
  /// all earlier operations. Ranks in different operations may not notice it at once, for example a
  /// root that only sends. Because of the earlier operations, the next operation in which they meet
  /// detects it.
  std::uint64_t detail = 0;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Hash of all fields except the sequence.
std::uint64_t digest(const Fingerprint& fingerprint);

/// "all_reduce #12 (sum of 1000 f32)"
std::string describe(const Fingerprint& fingerprint);

/// Error(mismatch) that describes both sides.
Error mismatch(Rank self, const Fingerprint& own, Rank peer, const Fingerprint& theirs);

// ---- on the wire

/// Sent before an operation's first bytes on a link.
struct Header {
  static constexpr std::size_t kSize = 48;
  Fingerprint fingerprint;
  /// How much the sender sends on this link in this operation, without the header.
  Bytes link_bytes;

  std::array<std::byte, kSize> encode() const;
  /// Nothing if these are not the bytes of a header.
  static std::optional<Header> decode(std::span<const std::byte, kSize> bytes);
};

// ---- in the window

/// Where a rank's input and output lie in its arena, packed into one word.
class PackedPlace {
 public:
  /// Neither input nor output is registered.
  PackedPlace() = default;
  explicit PackedPlace(std::uint64_t word) : word_(word) {}
  PackedPlace(const std::optional<transport::ArenaOffset>& input,
              const std::optional<transport::ArenaOffset>& output);

  std::uint64_t word() const { return word_; }
  /// False if the addresses do not fit into the word. Then they are in the Entry.
  bool is_whole() const { return word_ != kElsewhere; }
  /// Nothing if the memory is not registered.
  std::optional<transport::ArenaOffset> input() const { return part(word_ >> 32); }
  std::optional<transport::ArenaOffset> output() const { return part(word_ & 0xffff'ffffu); }

 private:
  static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};
  /// Half a word for each: 0 for memory that is not registered, otherwise 1 + the offset in lines.
  static constexpr std::uint64_t kLine = 64;
  static std::optional<std::uint64_t> half(const std::optional<transport::ArenaOffset>& offset);
  static std::optional<transport::ArenaOffset> part(std::uint64_t half);

  std::uint64_t word_ = 0;
};

/// What a rank publishes to the other ranks of its host when it enters an operation.
struct Entry {
  Fingerprint fingerprint;
  /// Where input and output lie in the arena; nothing if they do not lie there in one piece.
  std::optional<transport::ArenaOffset> input;
  std::optional<transport::ArenaOffset> output;
  Elements input_count;
  Elements output_count;

  transport::Notice encode() const;
  static Entry decode(const transport::Notice& notice);
};

}  // namespace peal::engine
