// The random numbers of one replica. LibTorch has one generator for all threads: without streams,
// the numbers that a replica gets would depend on the timing of the other replicas. Used by
// `DataParallel`.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/record_function.h>

#include <cstdint>

namespace peal::train {

/// A seed for the streams of one forward pass: one number of LibTorch's generator for CPUs. So
/// torch::manual_seed decides it.
std::uint64_t draw_seed();

/// While this object lives, operations of this thread that draw from LibTorch's generator for CPUs
/// draw from a stream of their own. An operation exchanges the state of the generator while it
/// runs, so operations with random numbers of different replicas run one after the other.
/// Threads: created and destroyed on one thread, after its ThreadLocalState is set. Another thread
///   that has no stream, and draws at the same time, makes the stream irreproducible.
/// Cost: about 0.2 us for each operation of the thread, and 1 us for each random operation.
class RandomStream final {
 public:
  /// Streams with the same seed and number are equal.
  RandomStream(std::uint64_t seed, int number);
  ~RandomStream();
  RandomStream(const RandomStream&) = delete;
  RandomStream& operator=(const RandomStream&) = delete;

  /// Called before and after each random operation of the thread.
  void enter();
  void leave();

 private:
  at::Generator own_;
  at::Generator others_;  // the state of LibTorch's generator, while an operation uses the stream
  int depth_ = 0;         // of random operations that call each other
  RandomStream* outer_;   // the stream that this one replaces
  at::RecordFunctionGuard recording_{true};
  at::CallbackHandle callback_;
};

}  // namespace peal::train
