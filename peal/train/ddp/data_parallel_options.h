// The options of DistributedDataParallel.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/train/ddp/communication_hook.h"

namespace peal::train {

/// What a gradient becomes. g_r is the gradient of rank r, n the number of ranks.
enum class Average : unsigned char {
  kMean,  // (g_0 + g_1 + ...) / n
  kSum,   // g_0 + g_1 + ...
  /// (s_0 * g_0 + s_1 * g_1 + ...) / (s_0 + s_1 + ...), where s_r is the number of samples of the
  /// backward pass on rank r. If each loss is the mean over its samples, this is the gradient of
  /// the mean over all samples, also if ranks have batches of different sizes. In a window of
  /// no_sync(), each pass counts with its samples, so do not divide the loss by the number of
  /// passes. To discard a window, drop its gradients by zero_grad(). zero_grad(false) sets them to
  /// zero, and zeros count with the samples of their passes.
  kBySamples,
};

/// How to treat a parameter that the backward pass of some rank does not reach.
enum class UnusedParameters : unsigned char {
  /// A rank that does not reach the parameter counts as zero. If no rank reaches it, its gradient
  /// does not change.
  kContributeNothing,
  kAreErrors,  // backward() throws on every rank, and names such parameters
};

/// Buffers are tensors of a module that are not trained, such as the statistics of batch norm.
enum class BufferSync : unsigned char {
  // After every backward pass all ranks get the buffers of the lowest rank that had data.
  kBroadcast,
  // ... get the mean over the ranks that had data; integers: as kBroadcast.
  kAverage,
  kNone,  // each rank keeps its buffers
};

enum class Graph : unsigned char {
  kMayChange,
  /// Every backward pass reaches the same parameters, each equally often. The first pass sends
  /// nothing before its end, and counts. Later passes do not wait for parameters that the first
  /// pass did not reach. A parameter may be reached several times, as by a layer that is
  /// checkpointed in two places.
  kStatic,
};

/// What construction does.
enum class Start : unsigned char {
  kBroadcast,  // compares the modules of all ranks, and gives every rank the values of rank 0
  kAsIs,       // compares the modules only; the program ensures that they have the same values
};

/// How gradients get to their places in the buckets.
enum class Computation : unsigned char {
  /// Autograd computes large gradients there, because LibTorch's allocator gives it that memory
  /// (place_allocator.h). It replaces LibTorch's CPU allocator in this process.
  kInPlace,
  kCopied,  // gradients are copied when they arrive
};

struct DataParallelOptions {
  /// The approximate size of the buckets in which gradients are sent. Smaller buckets start
  /// earlier, larger buckets are more efficient.
  Bytes bucket_cap = 25_MiB;
  /// The size of the bucket that is complete first.
  Bytes first_bucket_cap = 1_MiB;
  Average average = Average::kMean;
  UnusedParameters unused = UnusedParameters::kContributeNothing;
  BufferSync buffers = BufferSync::kBroadcast;
  Graph graph = Graph::kMayChange;
  Start start = Start::kBroadcast;
  Computation computation = Computation::kInPlace;
  /// Parameters and buffers, by name, that are neither sent nor compared.
  std::vector<std::string> ignored = {};
  /// Averages the gradients in place of all_reduce. Null: all_reduce.
  std::shared_ptr<CommunicationHook> hook = nullptr;
  /// Waits for operations in flight; null: Work::wait. For programs that handle signals while they
  /// wait. Blocking operations call the group's interrupt instead.
  std::function<void(Work&)> wait = nullptr;
  /// Called with each error that is about to leave backward(). May throw the error as another
  /// exception; if it returns, the error leaves unchanged. Null: errors leave unchanged. For
  /// languages that have their own exceptions.
  std::function<void(const std::exception_ptr&)> leave_backward = nullptr;
  /// The timeout of each operation.
  Timeout timeout = kGroupTimeout;
};

}  // namespace peal::train
