#include "peal/train/checkpoint/async_checkpointer.h"

#include <numeric>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/system/task_thread.h"
#include "peal/train/checkpoint/publish.h"
#include "peal/train/checkpoint/rank_files.h"

namespace peal::train {
namespace {

ProcessGroupPtr same_ranks(ProcessGroup& group) {
  std::vector<Rank> all(static_cast<std::size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  return group.new_group(all);
}

Ranks ranks_of(const ProcessGroupPtr& group, Timeout timeout) {
  return group ? Ranks(*group, timeout) : Ranks();
}

std::unique_ptr<TaskThread> started_thread() {
  auto thread = std::make_unique<TaskThread>();
  thread->start();
  return thread;
}

void copy_tensors(std::vector<RankFile>& files) {
  for (RankFile& file : files) {
    for (auto& [name, tensor] : file.tensors) {
      torch::Tensor copy = torch::empty(tensor.sizes(),
                                        tensor.options()
                                            .device(torch::kCPU)
                                            .requires_grad(false)
                                            .memory_format(torch::MemoryFormat::Contiguous));
      copy.copy_(tensor.detach());
      tensor = std::move(copy);
    }
  }
}

}  // namespace

AsyncCheckpointer::AsyncCheckpointer(ProcessGroupPtr group,
                                     std::filesystem::path folder,
                                     const SaveOptions& options)
    : group_(std::move(group)),
      writers_(same_ranks(*group_)),
      folder_(std::move(folder)),
      options_(options),
      thread_(started_thread()) {}

AsyncCheckpointer::AsyncCheckpointer(std::filesystem::path folder, const SaveOptions& options)
    : folder_(std::move(folder)), options_(options), thread_(started_thread()) {}

// The thread finishes its task before it ends.
AsyncCheckpointer::~AsyncCheckpointer() = default;

void AsyncCheckpointer::save(const Checkpoint& checkpoint) {
  wait();
  const Ranks ranks = ranks_of(group_, options_.timeout);
  std::vector<RankFile> files = rank_files(ranks, checkpoint, options_.writers);
  ranks.together([&] { copy_tensors(files); });  // may lack memory
  const auto task = std::make_shared<std::packaged_task<void()>>(
      [this, step = checkpoint.step, files = std::move(files)] {
        publish(ranks_of(writers_, options_.timeout), folder_, step, files, options_.keep);
      });
  running_ = task->get_future();
  thread_->post([task] { (*task)(); });
}

void AsyncCheckpointer::wait() {
  if (running_.valid()) std::exchange(running_, {}).get();
}

}  // namespace peal::train
