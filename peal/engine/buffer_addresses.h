// The addresses of a schedule's memory in this process, for one operation.
#pragma once

#include <vector>

#include "peal/base/dtype.h"
#include "peal/engine/regions.h"
#include "peal/schedule/schedule.h"

namespace peal::engine {

/// One place of a slice: a rank's space, and an offset in it.
struct Operand {
  std::uint32_t base = 0;  // BufferAddresses::base_of; Operand::kWire for elements from the wire
  Elements offset;

  static constexpr std::uint32_t kWire = ~std::uint32_t{0};
};

/// Filled by the collective and its execution for each operation.
class BufferAddresses {
 public:
  BufferAddresses(Rank self, int ranks)
      : self_(self), bases_(3 * static_cast<std::size_t>(ranks)) {}

  /// The number of a space of a rank; not for the wire.
  static std::uint32_t base_of(schedule::Space space, Rank rank) {
    return static_cast<std::uint32_t>(rank) * 3 + static_cast<std::uint32_t>(space);
  }

  /// This rank's memory. Memory and regions are borrowed.
  void set_own(DType dtype, const Regions& input, const Regions& output) {
    dtype_ = dtype;
    element_ = size_of(dtype);
    input_ = &input;
    output_ = &output;
    in_one_piece_ = input.is_one_piece() && output.is_one_piece();
    set(schedule::Space::kInput, self_, input.data());
    set(schedule::Space::kOutput, self_, output.data());
  }
  void set(schedule::Space space, Rank rank, std::byte* begin) {
    bases_[base_of(space, rank)] = begin;
  }

  DType dtype() const { return dtype_; }
  Bytes element() const { return element_; }
  const Regions& input() const { return *input_; }
  const Regions& output() const { return *output_; }
  /// Whether every space of every rank is one piece. Then a whole operand lies at `address`.
  bool in_one_piece() const { return in_one_piece_; }

  std::byte* address(const Operand& operand) const {
    return bases_[operand.base] + operand.offset.value * element_.value;
  }

  /// The memory of an operand: up to the end of its piece, and at most `limit`.
  Extent at(const Operand& operand, Elements limit) const {
    if (!in_one_piece_) {
      const bool is_input = operand.base == base_of(schedule::Space::kInput, self_);
      if (is_input || operand.base == base_of(schedule::Space::kOutput, self_)) {
        const Extent extent = (is_input ? *input_ : *output_).at(operand.offset, element_);
        return {extent.data, std::min(extent.count, limit)};
      }
    }
    return {address(operand), limit};
  }

 private:
  Rank self_;
  DType dtype_ = DType::kU8;
  Bytes element_ = 1_B;
  const Regions* input_ = nullptr;
  const Regions* output_ = nullptr;
  bool in_one_piece_ = true;
  std::vector<std::byte*> bases_;
};

}  // namespace peal::engine
