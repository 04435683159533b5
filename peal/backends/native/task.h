// Turns a request of the group into a task of the engine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/collective.h"
#include "peal/group/backend.h"

namespace peal::native {

/// Makes tasks of requests. Keeps the memory for the scaled input of premul_sum, so a task is valid
/// until the next one is made.
/// Threads: one at a time.
class TaskMaker {
 public:
  explicit TaskMaker(int ranks) : ranks_(ranks) {}

  /// For groups of two or more. Scales the input of premul_sum, so call it only when the
  /// operation's turn has come.
  const engine::Task& make(const Request& request);

  /// Runs the whole operation in a group of one: copies the input to the output.
  static void run_alone(const Request& request);

 private:
  /// The fields that identify a task with even blocks: loops repeat their tasks.
  struct Even {
    Operation operation = Operation::kBarrier;
    DType dtype = DType::kU8;
    ReduceOp::Kind reduce = ReduceOp::Kind::kSum;
    bool in_place = false;
    Rank root = 0;
    Elements count;

    friend bool operator==(const Even&, const Even&) = default;
  };
  void fill(const Request& request);
  void fill_problem(const Request& request);
  void scale_input(const Request& request);

  int ranks_;
  engine::Task task_;
  std::optional<Even> last_;  // empty if these fields do not identify the last task
  std::vector<std::byte> scaled_;
};

/// "all_reduce of 1000 f32", for errors before an operation has its number.
std::string describe(const Request& request);

}  // namespace peal::native
