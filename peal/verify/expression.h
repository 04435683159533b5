// What an element of memory holds, as a formula over the ranks' inputs. Equal formulas have equal
// numbers, so comparing two ranks' results to the bit is comparing integers. Used by the memory and
// the walk. Expressions share their parts, so that a short schedule can make one that would fill a
// book: whoever walks down an expression stops in time.
#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"

namespace peal::verify {

using ExpressionId = int;

/// What was there before anybody wrote.
inline constexpr ExpressionId kNothing = 0;

/// An expression, taken at an index of the inputs that it is made of.
struct Value {
  ExpressionId expression = kNothing;
  Elements index = {};

  /// What stands `distance` elements further on in the same run.
  Value at(Elements distance) const {
    return expression == kNothing ? Value{} : Value{expression, index + distance};
  }

  friend auto operator<=>(const Value&, const Value&) = default;
};

/// A row of elements that hold consecutive indices of one expression.
struct Run {
  Value first;
  Elements count;

  friend bool operator==(const Run&, const Run&) = default;
};

/// What a range of memory or a message holds, from its beginning to its end.
using Content = std::vector<Run>;

/// Appends a run, joined to the last one where it continues it.
void append(Content& content, const Run& run);

/// All expressions of one proof.
class Expressions {
 public:
  Expressions();

  /// in_rank[index], of the operation with this place in the sequence.
  Value input(int operation, Rank rank, Elements index);

  /// op(...op(op(terms[0], terms[1]), terms[2])..., terms[n-1]), element by element; one term is
  /// itself. Shape: all of the same length, at least one. Terms are not flattened: a nested
  /// reduction rounds where a longer one does not.
  Content reduce(std::span<const Content> terms);

  /// The operator's first step on each element as a contribution, before it is reduced.
  Content begin(Content content);

  /// The operator's completion of each element.
  Content finish(Content content);

  /// Whether this is a finished reduction that is not finished anywhere inside. Each rank's input
  /// of that operation must appear exactly once, be begun exactly once, and have the same index.
  bool is_whole_reduction(ExpressionId expression, int operation, int ranks) const;

  /// "in_3[17]", "finish(reduce(begin(in_0[5]), begin(in_1[5])))", "nothing"; long ones are cut.
  std::string describe(Value value) const;

 private:
  enum class Kind { kUnwritten, kInput, kBegin, kReduce, kFinish };

  struct Node {
    Kind kind = Kind::kUnwritten;
    int operation = 0;
    Rank rank = 0;
    std::vector<Value> terms;  // indices relative to the node's own

    friend auto operator<=>(const Node&, const Node&) = default;
  };

  struct Leaf {
    int operation;
    Rank rank;
    Elements index;

    friend auto operator<=>(const Leaf&, const Leaf&) = default;
  };

  Value reduce(std::span<const Value> terms);
  Content each(Kind kind, Content content);
  ExpressionId intern(Node node);
  const Node& node(ExpressionId id) const { return *nodes_[static_cast<std::size_t>(id)]; }
  /// Appends the inputs below. Returns false if a node below is neither a begun input nor a
  /// reduction, or if there are more than `budget` nodes. Reduces `budget` by the nodes.
  bool collect(Value value, int& budget, std::vector<Leaf>& leaves) const;
  void print(Value value, std::string& text) const;

  std::map<Node, ExpressionId> ids_;
  std::vector<const Node*> nodes_;  // the keys of ids_, by number
};

}  // namespace peal::verify
