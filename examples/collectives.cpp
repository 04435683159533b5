// Runs every collective operation once and shows the result. Rank r begins with values that depend
// on r, so that the output shows how the data moved.
//   build/release/bin/peal run -n 4 build/release/bin/collectives
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace {

using Values = std::vector<int>;

/// One line of output for each rank, in the order of the ranks.
void show(peal::ProcessGroup& group, const std::string& what, const Values& values) {
  std::string line = what + ": rank " + std::to_string(group.rank()) + " has";
  for (const int value : values) line += " " + std::to_string(value);
  for (peal::Rank turn = 0; turn < group.size(); ++turn) {
    if (turn == group.rank()) std::cout << line + "\n" << std::flush;
    group.barrier();
  }
}

void run(peal::ProcessGroup& group) {
  const int rank = group.rank();
  const int size = group.size();
  const auto ranks = static_cast<std::size_t>(size);
  const peal::Rank root = 0;

  Values data = {rank, 10 * rank};
  group.broadcast(data, size - 1);
  show(group, "broadcast from the last rank", data);

  data = {rank, 10 * rank};
  group.reduce(data, root, {.op = peal::ReduceOp::kSum});
  show(group, "reduce to rank 0 by sum", data);

  data = {rank, 10 * rank};
  group.all_reduce(data, {.op = peal::ReduceOp::kMax});
  show(group, "all_reduce by max", data);

  Values all(ranks);
  if (rank == root) std::iota(all.begin(), all.end(), 100);
  Values own(1);
  group.scatter(all, own, root);
  show(group, "scatter from rank 0", own);

  Values gathered(rank == root ? ranks : 0);
  group.gather(own, gathered, root);
  show(group, "gather to rank 0", gathered);

  Values everything(ranks);
  group.all_gather(own, everything);
  show(group, "all_gather", everything);

  group.reduce_scatter(everything, own, {.op = peal::ReduceOp::kSum});
  show(group, "reduce_scatter by sum", own);

  Values to(ranks), from(ranks);
  for (int peer = 0; peer < size; ++peer) to[static_cast<std::size_t>(peer)] = 10 * rank + peer;
  group.all_to_all(to, from);
  show(group, "all_to_all", from);
}

/// Operations run in a group: all ranks, or some of them.
void run_in_a_part(peal::ProcessGroup& world) {
  const Values members = {0, 1};
  if (world.rank() >= 2 || world.size() < 2) return;  // only members call new_group
  const peal::ProcessGroupPtr pair = world.new_group(members);
  Values data = {1};
  pair->all_reduce(data);
  show(*pair, "all_reduce in the group of ranks 0 and 1", data);
}

}  // namespace

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  run(*group);
  run_in_a_part(*group);
  group->barrier();
  return 0;
} catch (const peal::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
