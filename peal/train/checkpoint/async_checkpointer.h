// Saves checkpoints on a thread of its own, while training continues.
#pragma once

#include <filesystem>
#include <future>
#include <memory>

#include "peal/group/process_group.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/save_checkpoint.h"

namespace peal {
class TaskThread;
}

namespace peal::train {

/// As save_checkpoint, in two parts. `save` copies the tensors and returns, so that the next step
/// may change them. A thread writes the copies and publishes the checkpoint. One save is in
/// progress at a time. The ranks agree on the thread by a group of their own, so training may use
/// its group at the same time.
/// Order: construction, save and wait are collective.
/// Threads: one at a time.
class AsyncCheckpointer final {
 public:
  /// Errors: those of ProcessGroup::new_group; resource (no thread).
  AsyncCheckpointer(ProcessGroupPtr group,
                    std::filesystem::path folder,
                    const SaveOptions& options = {});
  /// For a program without a group.
  explicit AsyncCheckpointer(std::filesystem::path folder, const SaveOptions& options = {});
  /// Waits for the save in progress, and ignores its error: call wait() before.
  ~AsyncCheckpointer();
  AsyncCheckpointer(const AsyncCheckpointer&) = delete;
  AsyncCheckpointer& operator=(const AsyncCheckpointer&) = delete;

  /// Waits for the last save. Then copies the tensors that this rank writes, and returns while they
  /// are written.
  /// Errors: the error of the last save, on every rank; then nothing is saved, and the next call
  ///   may try again. Those of save_checkpoint that need no file.
  /// Cost: memory for the copies until they are written; the operations of save_checkpoint.
  void save(const Checkpoint& checkpoint);

  /// Returns when the last save is published. Errors: those of save_checkpoint, once.
  void wait();

 private:
  ProcessGroupPtr group_;    // of training; nullptr without a group
  ProcessGroupPtr writers_;  // the same ranks, for the thread
  std::filesystem::path folder_;
  SaveOptions options_;
  std::future<void> running_;
  std::unique_ptr<TaskThread> thread_;
};

}  // namespace peal::train
