// The interface of the backends that a worker measures: peal's group, the probe and the bare stream
// implement it; `work` (worker.h) calls it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "peal/bench/case.h"

namespace peal::bench {

/// One operation with its buffers, ready to be repeated.
class Trial {
 public:
  virtual ~Trial() = default;
  /// The input and output of this rank; empty if it has none. They may be the same memory.
  virtual std::span<std::byte> input() = 0;
  virtual std::span<std::byte> output() = 0;
  virtual void run() = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string note() const = 0;
  /// Whether the backend supports the case in the variant; if not, `prepare` is not called.
  virtual bool can(const Case&, const std::string& variant) const = 0;
  /// The type as which the values are checked; for most backends the type of the case.
  virtual DType checked_as(DType dtype) const { return dtype; }
  /// Called by all ranks. Errors: those of the backend; usage for an unknown variant.
  virtual std::unique_ptr<Trial> prepare(const Case&, const std::string& variant) = 0;
};

}  // namespace peal::bench
