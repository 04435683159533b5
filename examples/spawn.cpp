// Ranks from one program, without `peal run`: four processes pass a token around a ring, and add
// their ranks. Then a rank fails, and the program catches its error.
//   build/release/bin/spawn
#include "peal/launch/spawn.h"

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace {

constexpr int kRanks = 4;

/// Runs on each rank. Returns the sum of all ranks.
int run(peal::Rank rank) {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  std::vector<int> token = {0};
  if (rank > 0) group->recv(token, rank - 1);
  ++token[0];
  if (rank + 1 < group->size()) group->send(token, rank + 1);
  std::cout << "Rank " + std::to_string(rank) + " has token " + std::to_string(token[0]) + "\n";

  std::vector<int> sum = {rank};
  group->all_reduce(sum);
  return sum[0];
}

/// Runs on each rank of another job. Rank 2 fails.
void read_shard(peal::Rank rank) {
  if (rank == 2) throw std::runtime_error("cannot read shard-2.bin");
}

/// Returns whether the error names the rank and the exception.
bool catches_the_failure() {
  try {
    peal::spawn(kRanks, read_shard);
  } catch (const peal::SpawnError& error) {
    std::cout << error.what() << std::endl;  // aborted: rank 2 of 4 failed: cannot read shard-2.bin
    return error.details().reason == "cannot read shard-2.bin";
  }
  return false;
}

}  // namespace

int main() try {
  const std::vector<int> sums = peal::spawn(kRanks, run);
  std::cout << "The ranks have returned";
  for (const int sum : sums) std::cout << " " << sum;
  std::cout << std::endl;
  return sums == std::vector<int>(kRanks, 0 + 1 + 2 + 3) && catches_the_failure() ? 0 : 1;
} catch (const peal::Error& error) {  // also a SpawnError
  std::cerr << error.what() << std::endl;
  return 1;
}
