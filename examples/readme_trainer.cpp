// The README's program with a Trainer: peal run -n 2 readme_trainer
#include <iostream>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/trainer/progress_bar.h"
#include "peal/train/trainer/trainer.h"

#include "mnist/digits.h"
#include "mnist/images.h"
#include "mnist/net.h"

int main() {
  const auto group = peal::init_process_group();
  const mnist::ImageDataset digits(mnist::generated_digits(/*seed=*/1).train);  // or your own
  Net net(/*dropout_rate=*/0.25);
  torch::optim::AdamW optimizer(net->parameters(), 1e-3);
  peal::train::Trainer trainer(net, optimizer, group, {.epochs = 3, .clip_norm = 5.0});
  peal::train::ProgressBar bar(std::cout, group->rank(), /*epochs=*/3);
  bar.show(trainer);
  peal::train::DistributedSampler sampler(*digits.size(), group->rank(), group->size());
  const auto loader = torch::data::make_data_loader(digits, sampler, /*batch_size=*/64);
  const auto report = trainer.fit(*loader, sampler, [](auto& model, auto& batch) {
    return torch::nll_loss(model.forward(batch.data), batch.target);
  });
  return report.exit_code();  // 130 after Ctrl-C
}
