// Means over the samples of all ranks, such as of the loss.
#pragma once

#include <map>
#include <string>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// Collects values on this rank, and averages them over all ranks:
///   metrics.add("accuracy", right / n, n);
///   const double accuracy = metrics.reduce(*group).at("accuracy");
class Metrics final {
 public:
  /// `mean` is the mean of `samples` values. Errors: usage (a name that is empty or has several
  /// lines).
  void add(const std::string& name, double mean, double samples);
  void clear() { sums_.clear(); }

  /// By name, (sum over ranks and calls of mean * samples) / (sum of samples). A name without
  /// samples has NaN.
  /// Order: collective. A rank without any value takes part; other ranks have the same names.
  /// Errors: mismatch on every rank (the names differ), those of all_reduce and broadcast.
  /// Cost: 3 small operations.
  std::map<std::string, double> reduce(ProcessGroup& group, Timeout timeout = kGroupTimeout) const;

  /// The same for this rank alone.
  std::map<std::string, double> local() const;

 private:
  struct Sum {
    double weighted = 0;
    double samples = 0;
  };
  std::map<std::string, Sum> sums_;
};

}  // namespace peal::train
