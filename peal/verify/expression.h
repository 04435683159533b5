// The content of an element, as a formula over the inputs of the ranks. Equal formulas have equal
// numbers, so comparing the bits of two ranks' results is comparing integers. Used by memory.h and
// symbolic_run.h.
// Expressions share their parts, so a short schedule can make an expression of enormous size. Code
// that walks down an expression must limit its steps.
#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"

namespace peal::verify {

using ExpressionId = int;

/// The content of memory that was never written.
inline constexpr ExpressionId kNothing = 0;

/// An expression, at an index of its inputs.
struct Value {
  ExpressionId expression = kNothing;
  Elements index = {};

  /// The value `distance` elements further on in the same run.
  Value at(Elements distance) const {
    return expression == kNothing ? Value{} : Value{expression, index + distance};
  }

  friend auto operator<=>(const Value&, const Value&) = default;
};

/// Consecutive elements that hold consecutive indices of one expression.
struct Run {
  Value first;
  Elements count;

  friend bool operator==(const Run&, const Run&) = default;
};

/// The content of a range of memory or of a message, from its beginning to its end.
using Content = std::vector<Run>;

/// Appends a run. Joins it to the last run if it continues that run.
void append(Content& content, const Run& run);

/// All expressions of one proof.
class Expressions {
 public:
  Expressions();

  /// in_rank[index] of this operation of the sequence.
  Value input(int operation, Rank rank, Elements index);

  /// op(...op(op(terms[0], terms[1]), terms[2])..., terms[n-1]), element by element; one term gives
  /// that term. Shape: at least one term; all terms have the same length. Terms are not flattened:
  /// a nested reduction rounds at other places than a longer one.
  Content reduce(std::span<const Content> terms);

  /// Applies the operator's first step, for contributions, to each element.
  Content begin(Content content);

  /// Applies the operator's last step to each element.
  Content finish(Content content);

  /// Whether this is a finished reduction with no finished value inside. The input of each rank for
  /// that operation must appear exactly once, begun exactly once, at the same index.
  bool is_whole_reduction(ExpressionId expression, int operation, int ranks) const;

  /// "in_3[17]", "finish(reduce(begin(in_0[5]), begin(in_1[5])))", "nothing"; long ones are cut.
  std::string describe(Value value) const;

  enum class Kind { kUnwritten, kInput, kBegin, kReduce, kFinish };

  struct Node {
    Kind kind = Kind::kUnwritten;
    int operation = 0;         // of an input
    Rank rank = 0;             // of an input
    std::vector<Value> terms;  // indices are relative to the node's index

    friend auto operator<=>(const Node&, const Node&) = default;
  };

  const Node& node(ExpressionId id) const { return *nodes_[static_cast<std::size_t>(id)]; }

 private:
  struct Leaf {
    int operation;
    Rank rank;
    Elements index;

    friend auto operator<=>(const Leaf&, const Leaf&) = default;
  };

  Value reduce(std::span<const Value> terms);
  Content each(Kind kind, Content content);
  ExpressionId intern(Node node);
  /// Appends the inputs below. Returns false if a node below is neither a begun input nor a
  /// reduction, or if there are more than `budget` nodes. Subtracts the nodes from `budget`.
  bool collect(Value value, int& budget, std::vector<Leaf>& leaves) const;
  void print(Value value, std::string& text) const;

  std::map<Node, ExpressionId> ids_;
  std::vector<const Node*> nodes_;  // the keys of ids_, by number
};

}  // namespace peal::verify
