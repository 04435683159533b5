// The parts that run the operations of a group, and the order in which they end. native.cpp makes
// one for each group of two or more ranks, and for a rank that sends to itself.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "peal/backends/native/collective_loop.h"
#include "peal/backends/native/group_error.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/backends/native/message_loop.h"
#include "peal/backends/native/native.h"
#include "peal/backends/native/progress_reports.h"
#include "peal/backends/native/table_planner.h"
#include "peal/base/error.h"
#include "peal/observe/group_recorder.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// Threads: those of its parts.
class GroupRuntime final {
 public:
  /// `recorder`, `quick_lock` and `mutex` outlive it. Errors: resource, usage (the algorithms in
  /// `options`).
  GroupRuntime(const Options& options,
               const observe::GroupRecorder& recorder,
               std::unique_ptr<transport::Transport> transport,
               QuickLock& quick_lock,
               FairMutex& mutex);

  CollectiveLoop& collectives() { return *collectives_; }
  MessageLoop& messages() { return *messages_; }
  GroupError& group_error() { return *group_error_; }
  /// May be read after the runtime is destroyed.
  std::shared_ptr<const GroupError> shared_group_error() const { return group_error_; }
  /// How many of the host's CPUs this rank may keep busy.
  int cpus() const { return cpus_; }
  bool has_asynchronous_progress() const {
    return cpus_ > 1 || transport_->ranks_on_host() < ranks_;
  }
  /// Null if ranks share no memory.
  transport::Window* window() { return transport_->window(); }

  /// Ends all operations in flight with `cause`.
  void stop(const Error& cause);

 private:
  void on_group_error();
  MessageLoop::Parts parts_of_messages(const Options& options, FairMutex& mutex);
  CollectiveLoop::Parts parts_of_collectives(const Options& options, QuickLock& quick_lock);

  // The loops are destroyed before the parts that they use.
  std::unique_ptr<transport::Transport> transport_;
  int ranks_;
  Cores cores_;
  int cpus_;
  TablePlanner planner_;
  const observe::GroupRecorder& recorder_;
  const LostPeers lost_peers_;
  std::atomic<bool> stopping_ = false;
  const std::shared_ptr<GroupError> group_error_;
  ProgressReports progress_reports_;
  std::atomic<CollectiveLoop*> judge_ = nullptr;  // of progress reports; null until it is made
  std::optional<MessageLoop> messages_;
  std::optional<CollectiveLoop> collectives_;
};

}  // namespace peal::native
