// What a worker measures, as an interface: implemented by peal's own group, by the probe and by the
// bare stream; driven by `serve` (worker.h).
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
  /// What this rank gives, and what it gets; empty where there is none. They may be the same
  /// memory.
  virtual std::span<std::byte> input() = 0;
  virtual std::span<std::byte> output() = 0;
  virtual void run() = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string note() const = 0;
  /// Whether it can do that at all; if not, `prepare` is not called.
  virtual bool can(const Case&, const std::string& variant) const = 0;
  /// How the values are to be checked: as those of this type. Most have the case's own.
  virtual DType checked_as(DType dtype) const { return dtype; }
  /// Called by all ranks. Errors: of what is measured; usage for a variant that there is not.
  virtual std::unique_ptr<Trial> prepare(const Case&, const std::string& variant) = 0;
};

}  // namespace peal::bench
