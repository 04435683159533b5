// A node of a binomial tree of ranks or of hosts.
#pragma once

#include <algorithm>
#include <vector>

#include "peal/base/units.h"

namespace peal::plan {

/// Members are numbered from the root on. The children of a number differ from it in one bit below
/// its lowest set bit.
class TreeNode {
 public:
  TreeNode(int members, int root, int self)
      : TreeNode(Number{(self - root + members) % members}, members, root) {}

  bool is_root() const { return number_ == 0; }
  bool is_leaf() const { return size() == 1; }
  int member() const { return (root_ + number_) % members_; }
  TreeNode parent() const { return with_number(number_ & (number_ - 1)); }

  /// How many numbers the subtree has, from this node's number on.
  int size() const { return std::min(reach(), members_ - number_); }
  /// How many numbers of this subtree come before the child's number.
  int before(const TreeNode& child) const { return child.number_ - number_; }

  std::vector<TreeNode> smallest_child_first() const {
    std::vector<TreeNode> children;
    for (int distance = 1; distance < size(); distance *= 2) {
      children.push_back(with_number(number_ + distance));
    }
    return children;
  }
  std::vector<TreeNode> largest_child_first() const {
    std::vector<TreeNode> children = smallest_child_first();
    std::reverse(children.begin(), children.end());
    return children;
  }

 private:
  struct Number {
    int value;
  };
  TreeNode(Number number, int members, int root)
      : members_(members), root_(root), number_(number.value) {}
  TreeNode with_number(int number) const { return {Number{number}, members_, root_}; }

  /// The lowest set bit: the size of the subtree if there were enough members.
  int reach() const { return is_root() ? members_ : number_ & -number_; }

  int members_;
  int root_;
  int number_;
};

}  // namespace peal::plan
