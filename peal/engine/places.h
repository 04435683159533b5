// Where the spaces of a schedule lie in this process while one operation runs.
#pragma once

#include <span>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/engine/regions.h"
#include "peal/schedule/schedule.h"

namespace peal::engine {

/// Filled by the collective for each operation, read by its walk.
struct Places {
  Rank self = 0;
  DType dtype = DType::kU8;
  const Regions* input = nullptr;
  const Regions* output = nullptr;
  /// By rank; only the own entry where an operation signals nothing.
  std::span<std::byte* const> stages;
  /// Where in each of them this operation's stage begins.
  std::ptrdiff_t stage_offset = 0;
  /// By rank, where the operation runs on registered memory; empty otherwise.
  std::vector<std::byte*> peer_inputs;
  std::vector<std::byte*> peer_outputs;

  Bytes element() const { return size_of(dtype); }

  /// The memory of one place of a slice, `done` elements into it; not for the wire. As far as
  /// `limit`.
  Extent at(schedule::Space space, Rank rank, Elements offset, Elements limit) const {
    const auto r = static_cast<std::size_t>(rank);
    const auto whole = [&](std::byte* base) {
      return Extent{base + offset.value * element().value, limit};
    };
    Extent extent;
    switch (space) {
      case schedule::Space::kInput:
        extent = rank == self ? input->at(offset, element()) : whole(peer_inputs[r]);
        break;
      case schedule::Space::kOutput:
        extent = rank == self ? output->at(offset, element()) : whole(peer_outputs[r]);
        break;
      case schedule::Space::kStage:
      case schedule::Space::kWire:
        extent = whole(stages[r] + stage_offset);
        break;
    }
    extent.count = std::min(extent.count, limit);
    return extent;
  }
};

}  // namespace peal::engine
