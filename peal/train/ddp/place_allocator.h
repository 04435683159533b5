// Lets autograd compute gradients directly in their places in the buckets, so that they need no
// copy.
//
// LibTorch gives no way to say where an operator writes a gradient. But every operator takes the
// memory of its result from c10::GetCPUAllocator(), which a program may replace. peal's allocator
// passes all requests on to the allocator before it, with one exception: while a thread runs a
// backward pass, a request for exactly as many bytes as an expected gradient has gets the place of
// that gradient. A wrong guess does no harm: the gradient is then copied, or gets another place.
// docs/decisions/0040 has the reasons.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// The memory of a place, which a tensor may use. Lives as long as a tensor uses it.
class PlaceMemory final : public c10::intrusive_ptr_target {
 public:
  PlaceMemory(Memory memory, void* data, std::size_t bytes)
      : memory_(std::move(memory)), data_(data), bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }
  /// Whether a tensor that autograd has allocated uses it.
  bool is_in_use() const { return is_in_use_.load(std::memory_order_acquire); }
  /// The allocator calls this for memory that is not in use.
  void* begin_use() {
    is_in_use_.store(true, std::memory_order_relaxed);
    return data_;
  }
  void end_use() { is_in_use_.store(false, std::memory_order_release); }

 private:
  Memory memory_;
  void* data_;
  std::size_t bytes_;
  std::atomic<bool> is_in_use_ = false;
};

using PlaceMemoryPtr = c10::intrusive_ptr<PlaceMemory>;

/// Answers requests for memory with places, from start() to stop(), for the thread that called
/// start(). If several are started, the last one is asked first.
/// Threads: one at a time. stop() may be called by another thread than start().
class PlaceAllocator final {
 public:
  /// Chooses a place for a request of `bytes`; null if none fits.
  using Choose = std::function<PlaceMemory*(std::size_t bytes)>;

  /// The first one in a process replaces LibTorch's allocator, for the rest of the process, but not
  /// an allocator without a raw deleter. Threads: no other thread allocates tensors meanwhile.
  explicit PlaceAllocator(Choose choose);
  ~PlaceAllocator() { stop(); }
  PlaceAllocator(const PlaceAllocator&) = delete;
  PlaceAllocator& operator=(const PlaceAllocator&) = delete;

  void start();
  void stop();

 private:
  Choose choose_;
  std::thread::id thread_;  // that called start(); none if stopped
};

/// While this object lives, requests of this thread get no places.
class PlacesPaused final {
 public:
  PlacesPaused();
  ~PlacesPaused();
  PlacesPaused(const PlacesPaused&) = delete;
  PlacesPaused& operator=(const PlacesPaused&) = delete;
};

/// Gives the tensor, and all tensors that share its storage, other memory with the same values.
void move_out_of_place(const torch::Tensor& tensor);

}  // namespace peal::train
