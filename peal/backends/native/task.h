// From a request of the group's to a task of the engine's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/collective.h"
#include "peal/group/backend.h"

namespace peal::native {

/// Makes tasks of requests. Keeps the memory that premul_sum scales its input into, so a task is
/// valid until the next one is made. Threads: one at a time.
class TaskMaker {
 public:
  explicit TaskMaker(int ranks) : ranks_(ranks) {}

  /// For groups of two and more. Scales the input of premul_sum: call it when the operation's turn
  /// has come, not before.
  const engine::Task& make(const Request& request);

  /// The whole operation in a group of one: what goes in comes out.
  static void run_alone(const Request& request);

 private:
  /// What is enough to know a task by, where all blocks are even: loops repeat themselves.
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
  std::optional<Even> last_;  // nothing if the last task is not known by that
  std::vector<std::byte> scaled_;
};

/// "all_reduce of 1000 f32", for errors before an operation has its number.
std::string describe(const Request& request);

}  // namespace peal::native
