// What the operations of a group run on, and in what order it ends. Made by native.cpp for each
// group of two and more, and for one rank that sends to itself.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "peal/backends/native/collective_loop.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/backends/native/message_loop.h"
#include "peal/backends/native/native.h"
#include "peal/backends/native/standings.h"
#include "peal/backends/native/table_planner.h"
#include "peal/base/error.h"
#include "peal/engine/verdict.h"
#include "peal/observe/group_recorder.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// Threads: those of its parts.
class Engine final {
 public:
  /// `recorder`, `gate` and `door` outlive it. Errors: resource, usage (what `options` say of
  /// algorithms).
  Engine(const Options& options,
         const observe::GroupRecorder& recorder,
         std::unique_ptr<transport::Transport> transport,
         Gate& gate,
         Door& door);

  CollectiveLoop& collectives() { return *collectives_; }
  MessageLoop& messages() { return *messages_; }
  engine::Verdict& verdict() { return *verdict_; }
  /// To be read when the engine is gone, too.
  std::shared_ptr<const engine::Verdict> shared_verdict() const { return verdict_; }
  /// How many of the host's this rank may keep busy.
  int cpus() const { return cpus_; }
  /// Null where ranks share no memory.
  transport::Window* window() { return transport_->window(); }

  /// Ends what is under way with `cause`, but for what has ended already.
  void stop(const Error& cause);

 private:
  void on_verdict();
  CollectiveLoop::Parts parts_of_collectives(const Options& options, Gate& gate);

  // The loops end before what they run on.
  std::unique_ptr<transport::Transport> transport_;
  int ranks_;
  Cores cores_;
  int cpus_;
  TablePlanner planner_;
  const observe::GroupRecorder& recorder_;
  const LostPeers lost_peers_;
  std::atomic<bool> stopping_ = false;
  const std::shared_ptr<engine::Verdict> verdict_;
  Standings standings_;
  std::atomic<CollectiveLoop*> judge_ = nullptr;  // of standings, once it is there
  std::optional<MessageLoop> messages_;
  std::optional<CollectiveLoop> collectives_;
};

}  // namespace peal::native
