// A parameter that is trained, and the gradient that its rank contributes to an average.
#pragma once

#include <cstddef>
#include <string>

#include <torch/types.h>

#include "peal/train/ddp/place_allocator.h"

namespace peal::train {

/// A window is the time from one averaging to the next: one backward pass, or several passes of
/// which only the last communicates.
///
/// The gradient of the window is collected in `place`, a part of a bucket, and parameter.grad() is
/// that tensor. So the gradients are in memory once, also after zero_grad() has dropped them: the
/// next gradient is written to the same place, and autograd keeps no tensor of its own. A gradient
/// on another device is a tensor of its own, which is copied to the place and back.
struct TrainedParameter {
  /// What happens to a gradient from before the window.
  enum class Earlier : unsigned char {
    kIsAveraged,  // it is equal on all ranks, so its mean is the same
    kIsAdded,     // it is set aside, and added to the result: a sum must not count it on each rank
  };

  std::string name;
  torch::Tensor tensor;

  std::size_t bucket = 0;
  torch::Tensor place;     // undefined if the gradient is sparse
  bool is_sparse = false;  // its gradient is sparse, on this rank or another
  PlaceMemoryPtr memory;   // of `place`; null if the gradient is small
  bool may_give = true;    // whether autograd may compute in it
  int expected_times = 1;  // gradients in each pass, for Graph::kStatic

  struct OfWindow {
    bool reached = false;
    torch::Tensor set_aside = {};  // the gradient from before the window
  };
  OfWindow window;

  struct OfPass {
    int times = 0;          // gradients so far
    bool is_final = false;  // the last expected gradient is in parameter.grad()
    bool is_ready = false;  // `place` holds what this rank contributes
    bool is_apart = false;  // the gradient is not in `place`, because `place` is of an old layout
  };
  OfPass pass;

  /// Adds weight * gradient to the gradient of the window. Returns what autograd has still to add:
  /// undefined if nothing.
  torch::Tensor accumulate(const torch::Tensor& gradient, double weight, Earlier earlier);

  /// Fills `place` with what this rank contributes.
  /// Errors: unsupported (a gradient that can be differentiated again).
  /// Cost: copies the gradient if it is not in its place.
  void fill_place(Earlier earlier);

  /// Ends the window: parameter.grad() becomes the result in `place`, or is as before if
  /// `reached_somewhere` is false: no rank has reached the parameter.
  void settle(bool reached_somewhere, Earlier earlier);

  /// Whether this pass's gradient may be computed in the place.
  bool expects_gradient() const;
  /// Whether a tensor other than the gradient is in the place: then the place cannot be written.
  bool is_occupied() const { return memory != nullptr && memory->is_in_use() && !is_in_place(); }

  /// Without a place in a bucket.
  void leave_bucket();

  /// From now on contributes nothing to `place`, and keeps its gradient elsewhere.
  void keep_apart();

  /// Gives the gradient another place. A gradient in the old place is copied to the new one.
  void move_to(std::size_t new_bucket, const torch::Tensor& new_place, PlaceMemoryPtr new_memory);
  /// Whether the gradient can be the tensor `place`, which is on the CPU.
  bool fits_device() const { return tensor.is_cpu(); }
  /// Whether the gradient is in its place.
  bool is_in_place() const { return place.defined() && tensor.grad().is_same(place); }

  /// Whether the program has dropped the gradient since the window's first pass.
  bool was_dropped() const { return window.reached && !tensor.grad().defined(); }
};

/// Throws unsupported for a gradient with a history, which an average would lose.
[[noreturn]] void reject_create_graph();

}  // namespace peal::train
