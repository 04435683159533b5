// Trains a network on handwritten digits, data-parallel, in two ways (from build/release/bin):
//   peal run -n 2 ./mnist        as in the tutorial: a partition of the data for each rank, and
//                                gradients averaged by hand after backward
//   peal run -n 2 ./mnist --ddp  with DistributedDataParallel and DistributedSampler
// `--data DIR` reads MNIST's files; without it the digits are drawn. `--help` lists all options.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/train/data/partitioner.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/trainer/progress_bar.h"

#include "exit_code.h"
#include "mnist/digits.h"
#include "mnist/images.h"
#include "mnist/mnist_files.h"
#include "mnist/net.h"
#include "mnist/options.h"
#include "mnist/progress.h"

namespace {

namespace train = peal::train;

/// One run, on one rank.
class Training {
 public:
  Training(peal::ProcessGroupPtr group, const Options& options, const mnist::DigitSets& sets)
      : group_(std::move(group)),
        options_(options),
        train_(sets.train),
        test_(sets.test),
        net_(options.dropout),
        optimizer_(net_->parameters(),
                   torch::optim::SGDOptions(options.learning_rate).momentum(options.momentum)),
        schedule_(optimizer_, 1, options.decay),
        progress_(group_->rank() == 0 ? Progress::Voice::kSpeaking : Progress::Voice::kSilent,
                  train::ProgressBar::terminal_columns(),
                  options.epochs,
                  local_batch() * group_->size()) {
    require_a_step();
    torch::manual_seed(options.seed + static_cast<std::uint64_t>(group_->rank()));  // for dropout
    progress_.say("Digits: " + sets.source);
  }

  /// As in the tutorial: each rank shuffles its partition, and averages gradients after backward.
  void by_hand() {
    train::broadcast_parameters(*group_, *net_);
    const auto parts = train::data::DataPartitioner::equal(
        static_cast<std::size_t>(train_.labels().size(0)), group_->size(), options_.seed);
    const auto part = parts.part(static_cast<std::size_t>(group_->rank()));
    const torch::Tensor mine =
        torch::tensor(std::vector<std::int64_t>(part.begin(), part.end()), torch::kInt64);

    for (int epoch = 1; epoch <= options_.epochs && !done(); ++epoch) {
      begin_epoch(epoch);
      const torch::Tensor order =
          mine.index_select(0, torch::randperm(mine.size(0), torch::kInt64));
      for (std::int64_t step = 0; step < steps_per_epoch() && !done(); ++step) {
        const torch::Tensor batch = order.narrow(0, step * local_batch(), local_batch());
        optimizer_.zero_grad();
        const torch::Tensor output = net_->forward(train_.images().index_select(0, batch));
        const torch::Tensor loss = torch::nll_loss(output, train_.labels().index_select(0, batch));
        loss.backward();
        train::average_gradients(*group_, *net_);
        optimizer_.step();
        note(loss);
      }
      end_epoch();
    }
  }

  /// With DistributedDataParallel, which averages gradients while backward still computes others.
  void by_distributed_data_parallel() {
    train::DistributedDataParallel model(net_, group_);
    train::DistributedSampler sampler(
        *train_.size(),
        group_->rank(),
        group_->size(),
        {.remainder = train::data::Remainder::kDrop, .seed = options_.seed});
    const auto loader = torch::data::make_data_loader(
        train_,
        sampler,
        torch::data::DataLoaderOptions(static_cast<std::size_t>(local_batch())).drop_last(true));

    for (int epoch = 1; epoch <= options_.epochs && !done(); ++epoch) {
      begin_epoch(epoch);
      sampler.set_epoch(static_cast<std::uint64_t>(epoch));
      for (const auto& batch : *loader) {
        optimizer_.zero_grad();
        const torch::Tensor loss = torch::nll_loss(model.forward(batch.data), batch.target);
        loss.backward();
        optimizer_.step();
        note(loss);
        if (done()) break;
      }
      end_epoch();
    }
  }

  /// The figures of the last epoch, as one line of JSON.
  std::string report(const std::string& data_kind) const {
    std::ostringstream line;
    line << std::setprecision(10) << "{\"loss\": " << loss_ << ", \"accuracy\": " << accuracy_
         << ", \"samples_per_second\": " << progress_.samples_per_second()
         << ", \"seconds\": " << progress_.seconds() << ", \"ranks\": " << group_->size()
         << ", \"epochs\": " << options_.epochs << ", \"data\": \"" << data_kind << "\"}\n";
    return line.str();
  }

 private:
  /// An epoch without a step has no loss.
  void require_a_step() const {
    if (steps_per_epoch() > 0) return;
    throw peal::Error(peal::ErrorKind::kUsage,
                      c10::str(train_.labels().size(0),
                               " training digits are less than one batch of ",
                               local_batch(),
                               " for each of ",
                               group_->size(),
                               " ranks: use a smaller --batch or fewer ranks"));
  }

  std::int64_t local_batch() const {
    return std::max<std::int64_t>(1, options_.global_batch / group_->size());
  }
  /// The same on every rank, though partitions may differ by a sample.
  std::int64_t steps_per_epoch() const {
    return train_.labels().size(0) / group_->size() / local_batch();
  }
  bool done() const { return options_.steps && steps_taken_ >= *options_.steps; }

  void begin_epoch(int epoch) {
    net_->train();
    epoch_loss_ = 0;
    epoch_steps_ = 0;
    progress_.begin_epoch(epoch, steps_per_epoch());
  }

  void note(const torch::Tensor& loss) {
    epoch_loss_ += loss.item<double>();
    epoch_steps_ += 1;
    steps_taken_ += 1;
    progress_.step(epoch_loss_ / epoch_steps_);
  }

  void end_epoch() {
    torch::Tensor loss = torch::tensor(epoch_loss_ / epoch_steps_, torch::kFloat64);
    train::all_reduce(*group_, loss, {.op = peal::ReduceOp::kAvg});
    loss_ = loss.item<double>();
    accuracy_ = held_out_accuracy();
    progress_.end_epoch(loss_, accuracy_);
    schedule_.step();
  }

  /// Each rank tests a part of the held-out digits.
  double held_out_accuracy() {
    const torch::NoGradGuard no_grad;
    net_->eval();
    const auto mine = [&](const torch::Tensor& all) {
      return all.tensor_split(group_->size())[static_cast<std::size_t>(group_->rank())];
    };
    const torch::Tensor guesses = net_->forward(mine(test_.images())).argmax(1);
    torch::Tensor right = guesses.eq(mine(test_.labels())).sum();
    train::all_reduce(*group_, right);
    return right.item<double>() / static_cast<double>(*test_.size());
  }

  peal::ProcessGroupPtr group_;
  const Options& options_;
  mnist::ImageDataset train_;
  mnist::ImageDataset test_;
  Net net_;
  torch::optim::SGD optimizer_;
  torch::optim::StepLR schedule_;
  Progress progress_;
  double epoch_loss_ = 0;
  int epoch_steps_ = 0;
  int steps_taken_ = 0;
  double loss_ = 0;
  double accuracy_ = 0;
};

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) {
    throw peal::Error(peal::ErrorKind::kResource,
                      "cannot write the report to " + path.string() + ": choose another place");
  }
}

void run(const Options& options) {
  const mnist::DigitSets sets = options.data.empty() ? mnist::generated_digits(options.seed)
                                                     : mnist::read_mnist(options.data);
  const peal::ProcessGroupPtr group = peal::init_process_group();
  torch::manual_seed(options.seed);
  Training training(group, options, sets);
  switch (options.method) {
    case Method::kByHand:
      training.by_hand();
      break;
    case Method::kDistributedDataParallel:
      training.by_distributed_data_parallel();
      break;
  }
  if (group->rank() == 0 && !options.report.empty()) {
    write(options.report, training.report(sets.kind));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return exit_code_of("mnist", [&] {
    Options options;
    if (const std::optional<int> code = parse(argc, argv, options)) return *code;
    run(options);
    return 0;
  });
}
