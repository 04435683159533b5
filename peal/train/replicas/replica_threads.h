// The threads of the replicas, kept between forward passes. Used by `DataParallel`.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "peal/base/guarded.h"

namespace peal::train {

/// Threads: one caller at a time.
class ReplicaThreads final {
 public:
  /// Each of the `count` threads computes with `intra_op` threads of LibTorch.
  /// Errors: resource.
  ReplicaThreads(int count, int intra_op);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  /// Calls task(0), ..., task(used - 1), each on a thread of its own, always the same. Returns when
  /// all calls have ended: what each call has thrown, or null.
  std::vector<std::exception_ptr> run(int used, const std::function<void(int)>& task);

 private:
  struct Round {
    std::uint64_t number = 0;
    int used = 0;
    int left = 0;  // calls that have not ended
    const std::function<void(int)>* task = nullptr;
    bool over = false;  // the threads end
  };

  void work(int index, int intra_op);
  void stop();

  Guarded<Round> round_;
  std::vector<std::exception_ptr> thrown_;
  std::vector<std::thread> threads_;
};

}  // namespace peal::train
