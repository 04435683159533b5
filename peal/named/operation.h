// An operation by name that a rank has submitted, and its memory.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "peal/base/clock.h"
#include "peal/group/buffer.h"
#include "peal/named/request.h"

namespace peal::named {

/// The memory of one operation on this rank. Dense, and kept alive by the caller until the
/// operation has ended.
struct Memory {
  /// all-reduce and broadcast: in place. reduce-scatter: the block of this rank. All-gather and
  /// all-to-all: empty; `allocate` gives it.
  Buffer output;
  /// All-gather, all-to-all and reduce-scatter: what this rank contributes. A reduce-scatter
  /// scales the input in place if the request has a prescale.
  Buffer input;
  /// All-gather and all-to-all: makes the output, from the number of rows that each rank
  /// contributes. Called once, on the thread that carries out the operation. May throw.
  std::function<Buffer(std::span<const std::int64_t> rows)> allocate;
  /// All-to-all: the rows for each rank.
  std::vector<std::int64_t> splits;
};

/// Threads: any number at once.
class Operation final {
 public:
  Operation(Request request, Memory memory)
      : request_(std::move(request)), memory_(std::move(memory)) {}

  const Request& request() const { return request_; }
  const Memory& memory() const { return memory_; }
  /// Whether the operation has ended, with or without an error.
  bool is_completed() const { return completed_.load(std::memory_order_acquire); }
  /// The error of a completed operation; null after success.
  const std::exception_ptr& error() const { return error_; }

  /// For the thread that carries out the operation; once.
  void complete(std::exception_ptr error) {
    error_ = std::move(error);
    completed_.store(true, std::memory_order_release);
  }

  /// When this rank submitted the operation; for reports.
  TimePoint submitted_at() const { return submitted_at_; }

 private:
  Request request_;
  Memory memory_;
  TimePoint submitted_at_ = Clock::now();
  std::exception_ptr error_;
  std::atomic<bool> completed_ = false;
};

using OperationPtr = std::shared_ptr<Operation>;

}  // namespace peal::named
