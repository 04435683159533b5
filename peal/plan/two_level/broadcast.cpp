#include "peal/plan/two_level/broadcast.h"

#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "peal/plan/banks.h"
#include "peal/plan/blocks.h"
#include "peal/plan/builder.h"
#include "peal/plan/tree_node.h"
#include "peal/plan/two_level/levels.h"

namespace peal::plan::two_level {
namespace {

using schedule::Part;
using schedule::Problem;

/// Four banks: a rank that has waited for piece k of the others knows that they have read its piece
/// k-2, and writes piece k+2 next. With four banks the root can also run ahead.
Banks banks_of(const Problem& problem) {
  return Banks(problem.stage_limit, problem.count, 1, 4, 4);
}

/// The host from which a host receives pieces, and the hosts to which it sends them.
struct Route {
  std::optional<int> from;
  std::vector<int> to;
};

Route chain(int hosts, int root, int self) {
  Route route;
  if (self != root) route.from = (self - 1 + hosts) % hosts;
  const int next = (self + 1) % hosts;
  if (next != root) route.to.push_back(next);
  return route;
}

Route tree(int hosts, int root, int self) {
  const TreeNode node(hosts, root, self);
  Route route;
  if (!node.is_root()) route.from = node.parent().member();
  for (const TreeNode& child : node.largest_child_first()) route.to.push_back(child.member());
  return route;
}

/// Whether the last piece reaches all hosts sooner in a chain than in a tree. The time is the
/// number of messages that follow one another: in a chain, the last host comes after all others; in
/// a tree, the root's host sends each piece to several hosts.
bool is_chain_shorter(std::int64_t pieces, int hosts) {
  const int rounds = std::bit_width(static_cast<unsigned>(hosts - 1));
  return hosts - 2 + pieces < rounds * pieces;
}

Route route_of(const Problem& problem, const Levels& levels) {
  const auto route = is_chain_shorter(banks_of(problem).pieces(), levels.hosts()) ? chain : tree;
  return route(levels.hosts(), levels.host_of(problem.root), levels.host());
}

/// The slice of a piece for each rank of a host. The root's index has the first, the largest.
Blocks slices_of(const Block& piece, int local) { return Blocks::even(piece.count, local, kGrain); }

class Broadcast {
 public:
  Broadcast(const Problem& problem, Rank self)
      : problem_(problem),
        levels_(problem, self),
        banks_(banks_of(problem)),
        route_(route_of(problem, levels_)),
        part_(problem, self) {}

  Part plan() && {
    for (std::int64_t i = 0; i < banks_.pieces(); ++i) {
      if (levels_.self() == problem_.root) {
        give(i);
      } else if (!route_.from) {
        take_from_root(i);
      } else {
        take_from_partner(i);
        if (i > 0) take_from_neighbours(i - 1);
      }
    }
    if (route_.from) take_from_neighbours(banks_.pieces() - 1);
    return std::move(part_).build(banks_.stage_for(problem_.count));
  }

 private:
  Block piece(std::int64_t i) const { return banks_.piece(i, problem_.count); }
  /// The slice of piece i that the rank with that index sends.
  Block slice(std::int64_t i, int index) const {
    const int turn = index - levels_.index_of(problem_.root) + levels_.local();
    Block block = slices_of(piece(i), levels_.local())[turn % levels_.local()];
    block.offset += piece(i).offset;
    return block;
  }
  Position staged(std::int64_t i, const Block& block) const {
    return banks_.bank(i) + (block.offset - piece(i).offset);
  }

  void give(std::int64_t i) {
    pass_on(i);
    if (banks_.is_reused(i)) part_.wait_for_others(i + 1 - banks_.banks());
    part_.copy(input_at(piece(i).offset), banks_.bank(i), piece(i).count);
    part_.signal(i + 1);
  }

  void take_from_root(std::int64_t i) {
    part_.wait(problem_.root, i + 1);
    part_.fetch(problem_.root, banks_.bank(i), output_at(piece(i).offset), piece(i).count);
    part_.signal(i + 1);
    pass_on(i);
  }

  void take_from_partner(std::int64_t i) {
    const Block own = slice(i, levels_.index());
    part_.receive(levels_.partner(*route_.from), output_at(own.offset), own.count);
    pass_on(i);
    part_.copy(output_at(own.offset), staged(i, own), own.count);
    part_.signal(i + 1);
  }

  /// Called one piece late, so that a rank rarely waits for its neighbours.
  void take_from_neighbours(std::int64_t i) {
    part_.wait_for_others(i + 1);
    for (const int index : levels_.neighbours()) {
      const Block other = slice(i, index);
      part_.fetch(levels_.neighbour(index), staged(i, other), output_at(other.offset), other.count);
    }
  }

  void pass_on(std::int64_t i) {
    const Block own = slice(i, levels_.index());
    for (const int host : route_.to) {
      part_.send(output_at(own.offset), levels_.partner(host), own.count);
    }
  }

  const Problem& problem_;
  Levels levels_;
  Banks banks_;
  Route route_;
  Builder part_;
};

}  // namespace

bool can_broadcast(const Problem& problem) { return banks_of(problem).possible(); }

Part broadcast(const Problem& problem, Rank self) { return Broadcast(problem, self).plan(); }

}  // namespace peal::plan::two_level
