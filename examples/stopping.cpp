// Training that a cluster may stop (from build/release/bin):
//   peal run -n 2 --grace 60 ./stopping CHECKPOINT
// Trains until the job is asked to stop, by SIGTERM or before its time limit. Then all ranks end
// after the same step, and rank 0 saves. The same command continues from the checkpoint.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "peal/init/init.h"

namespace {

struct State {
  long step = 0;
  double weight = 0;
};

State load(const std::string& path) {
  State state;
  std::ifstream(path) >> state.step >> state.weight;
  return state;
}

void save(const State& state, const std::string& path) {
  std::ofstream file(path + ".new");
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file << state.step << " " << state.weight << "\n";
  file.close();
  std::filesystem::rename(path + ".new", path);  // so that a checkpoint is never incomplete
}

/// Stands for a real step: the weight approaches the mean of the ranks' targets.
void train(peal::ProcessGroup& group, State& state) {
  std::vector<double> gradient = {state.weight - group.rank()};
  group.all_reduce(gradient, {.op = peal::ReduceOp::kAvg});
  state.weight -= 0.1 * gradient.front();
  ++state.step;
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "checkpoint";
  const long last = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  const peal::ProcessGroupPtr group = peal::init_process_group();
  State state = load(path);
  while (state.step < last && !group->should_stop()) {
    train(*group, state);
    if (state.step == 3) std::cout << "rank " << group->rank() << ": step 3" << std::endl;
  }
  if (group->rank() == 0) save(state, path);
  std::cout << "rank " << group->rank() << " ends after step " << state.step << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
