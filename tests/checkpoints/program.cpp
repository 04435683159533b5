// Reads and writes checkpoints for checkpoints_test.py.
//   copy IN OUT          reads tensors and writes them as a safetensors file
//   copy_pickled IN OUT  the same for a file of torch.save
//   shard IN OUT RANKS   saves tensors as a checkpoint in OUT, of which each rank has some rows
//   net OUT              trains a small net, saves a checkpoint, and what follows it
//   run NET              reads a net that Python has saved; exits with 0 if its output is the same
//   space OUT            saves checkpoints until the disk is full; then the last one must be whole
//   kill OUT COUNT RANKS kills COUNT processes of RANKS ranks that save checkpoints; each time,
//   reads
//                        the last one
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/pickled_file.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

void copy(const fs::path& from, const fs::path& to) { save_tensors(to, load_tensors(from)); }

/// Adds the rows of a tensor that this rank has; a short tensor belongs to rank 0.
void add_rows(Checkpoint& checkpoint,
              const std::string& name,
              const torch::Tensor& tensor,
              const ProcessGroup& group) {
  const auto ranks = group.size();
  TensorMap& model = checkpoint.models["model"];
  if (tensor.dim() == 0 || tensor.size(0) < ranks) {
    if (group.rank() == 0) model[name] = tensor;
    return;
  }
  const std::int64_t rows = tensor.size(0) / ranks;
  const std::int64_t first = rows * group.rank();
  const bool is_last = group.rank() + 1 == ranks;
  model[name] = tensor.narrow(0, first, is_last ? tensor.size(0) - first : rows);
  Shard& shard = checkpoint.shards["model"][name];
  shard.shape = tensor.sizes().vec();
  shard.offsets.resize(shard.shape.size());
  shard.offsets[0] = first;
}

void shard(const fs::path& from, const fs::path& to, int ranks) {
  const TensorMap tensors = load_tensors(from);
  testing::on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    Checkpoint now{.step = 1};
    for (const auto& [name, tensor] : tensors) add_rows(now, name, tensor, *group);
    return save_checkpoint(*group, to, now, {.writers = Writers::kAllRanks});
  });
}

/// checkpoints_test.py has the same net in Python.
struct Net : torch::nn::Module {
  Net() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return out(torch::relu(norm(conv(x))).flatten(1));
  }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 2, 3)};
  torch::nn::BatchNorm2d norm{2};
  torch::nn::Linear out{8, 3};
};

void save_net(const fs::path& to) {
  torch::manual_seed(1);
  Net net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.01).weight_decay(0.1));
  const torch::Tensor input = torch::randn({5, 1, 4, 4});
  const auto step = [&] {
    optimizer.zero_grad();
    net.forward(input).square().sum().backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) step();
  Checkpoint now{.step = 3};
  now.models["model"] = module_tensors(net);
  now.optimizers["optimizer"] = read_optimizer_state(optimizer, net.named_parameters());
  now.values.set("epoch", 2);
  save_checkpoint(to, now);
  step();
  TensorMap after = module_tensors(net);
  after["input"] = input;
  save_tensors(to / "after.safetensors", after);
}

void run_net(const fs::path& path) {
  TensorMap tensors = load_tensors(path);
  const torch::Tensor input = tensors.extract("input").mapped();
  const torch::Tensor output = tensors.extract("output").mapped();
  Net net;
  load_module(net, tensors);
  net.eval();
  require(net.forward(input).allclose(output, 1e-5, 1e-6), "the output of Python");
}

/// What the checkpoint of a step has.
Checkpoint checkpoint_of(std::int64_t step) {
  Checkpoint now{.step = step};
  for (int i = 0; i < 4; ++i) {
    now.models["model"]["layer" + std::to_string(i)] =
        torch::full({20'000}, static_cast<double>(step + i));
  }
  now.tensors["step"] = torch::tensor(step);
  return now;
}

void check_whole(const fs::path& path, std::int64_t least) {
  const CheckpointReader saved(path);
  require(saved.step() >= least,
          "the last checkpoint is at least of step " + std::to_string(least));
  const Checkpoint expected = checkpoint_of(saved.step());
  const StoredTensors model = saved.model("model");
  for (const auto& [name, tensor] : expected.models.at("model")) {
    require(model.read(name).equal(tensor), name);
  }
  require(saved.tensors().at("step").equal(expected.tensors.at("step")), "step");
}

void fill(const fs::path& folder) {
  for (std::int64_t step = 1; step < 1000; ++step) {
    try {
      save_checkpoint(folder, checkpoint_of(step));
    } catch (const std::exception& error) {
      std::cout << error.what() << std::endl;
      check_whole(folder / checkpoint_name(step - 1), step - 1);
      require(latest_checkpoint(folder) == folder / checkpoint_name(step - 1),
              "the last one counts");
      for (const auto& entry : fs::directory_iterator(folder)) {
        require(entry.path().filename().string().find("unfinished") == std::string::npos,
                "no rest");
      }
      return;
    }
  }
  throw std::runtime_error("the disk did not become full");
}

/// Saves until it is killed, and writes each step into the pipe when its save has returned.
void save_on(const fs::path& folder, int ranks, int pipe) {
  testing::on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    std::int64_t step = 0;
    if (const auto latest = latest_checkpoint(*group, folder))
      step = CheckpointReader(*latest).step();
    const Writers writers = ranks > 1 ? Writers::kAllRanks : Writers::kRank0;
    while (true) {
      ++step;
      save_checkpoint(*group, folder, checkpoint_of(step), {.writers = writers, .keep = 2});
      if (group->rank() == 0 && ::write(pipe, &step, sizeof step) != sizeof step) break;
    }
    return true;
  });
}

/// Kills the process after some saves and a random time; returns the last step that it reported.
std::int64_t kill_one(const fs::path& folder, int ranks, std::mt19937& random) {
  int pipe[2];
  require(::pipe(pipe) == 0, "a pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    save_on(folder, ranks, pipe[1]);
    ::_exit(1);
  }
  ::close(pipe[1]);
  std::int64_t step = 0;
  require(::read(pipe[0], &step, sizeof step) == sizeof step, "a save before the kill");
  std::this_thread::sleep_for(
      std::chrono::microseconds(random() % 20'000));  // the moment of the kill
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::int64_t later = 0;
  while (::read(pipe[0], &later, sizeof later) == sizeof later) step = later;
  ::close(pipe[0]);
  return step;
}

void kill_many(const fs::path& folder, int count, int ranks) {
  std::mt19937 random(std::random_device{}());
  int interrupted = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t reported = kill_one(folder, ranks, random);
    for (const auto& entry : fs::directory_iterator(folder)) {
      interrupted += entry.path().filename().string().find("unfinished") != std::string::npos;
    }
    check_whole(latest_checkpoint(folder).value(), reported);
  }
  std::cout << count << " processes were killed, " << interrupted << " of them during a save\n";
  // The next save removes what the killed processes have left.
  save_checkpoint(folder, checkpoint_of(1'000'000), {.keep = 1});
  require(std::distance(fs::directory_iterator(folder), {}) == 1,
          "only the new checkpoint is left");
}

int run(const std::vector<std::string>& arguments) {
  const auto is = [&](const std::string& mode, std::size_t count) {
    return !arguments.empty() && arguments[0] == mode && arguments.size() == count + 1;
  };
  if (is("copy", 2)) {
    copy(arguments[1], arguments[2]);
  } else if (is("copy_pickled", 2)) {
    save_tensors(arguments[2], load_pickled_tensors(arguments[1]));
  } else if (is("shard", 3)) {
    shard(arguments[1], arguments[2], std::stoi(arguments[3]));
  } else if (is("net", 1)) {
    save_net(arguments[1]);
  } else if (is("run", 1)) {
    run_net(arguments[1]);
  } else if (is("space", 1)) {
    fill(arguments[1]);
  } else if (is("kill", 3)) {
    kill_many(arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]));
  } else {
    throw std::runtime_error("wrong arguments");
  }
  return 0;
}

}  // namespace
}  // namespace peal::train

int main(int count, char** arguments) {
  try {
    torch::set_num_threads(1);
    return peal::train::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
