// Executes one collective after another, from request to result. A collective first enters: it
// tells the other ranks of the host which operation follows. Then it asks the planner for the
// rank's part, and executes the part. After the opening (schedule/opening.h) it chooses between the
// part for registered memory and the staged part. A state machine without a thread, driven by a
// backend. It reads no clock, except to measure the copies into the stage (kernels/watched_copy.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/buffer_addresses.h"
#include "peal/engine/execution.h"
#include "peal/engine/fingerprint.h"
#include "peal/engine/plan_cache.h"
#include "peal/engine/planner.h"
#include "peal/engine/progress_report.h"
#include "peal/transport/transport.h"
#include "peal/transport/window/window.h"

namespace peal::engine {

/// The operation to execute. The memory is borrowed until the collective is done or abandoned.
struct Task {
  /// Equal for two tasks in a row only if they differ in nothing but their memory; 0: not known.
  std::uint64_t kind = 0;
  schedule::Problem problem;  // `registered` and `stage_limit` are filled in by the collective
  DType dtype = DType::kU8;
  ReduceOp::Kind reduce = ReduceOp::Kind::kSum;
  Regions input;
  Regions output;
};

/// Threads: one at a time.
class Collective {
 public:
  /// `stage` is how much a rank may stage if there is no window.
  Collective(Rank self, int ranks, transport::Transport& transport, Planner& planner, Bytes stage);

  /// Starts an operation. For groups of two ranks and more. The previous operation must be done.
  /// From then on peers may see this rank in the operation, and access its registered memory.
  /// Throws Error(bug) if the planner has no schedule.
  void begin(const Task& task);

  /// Continues as far as possible without waiting. Throws Error(mismatch) and PeerClosed.
  Progress advance();

  /// After kBlocked: what the caller can sleep on.
  const Blocked& blocked() { return execution_.blocked(); }
  /// As Execution::raise_limit.
  void raise_limit() { execution_.raise_limit(); }

  /// For a collective that has been blocked for a while. Throws Error(mismatch) if a rank of the
  /// host has entered a different operation, also if this rank does not wait for that rank.
  void compare_entries() const;

  /// As Execution::waiting_for; and in words, with the last known state of each rank.
  const std::vector<Rank>& waiting_for() const { return execution_.waiting_for(); }
  std::string describe_missing() const;
  /// "all_reduce #12 (sum of 1000 f32)"
  std::string describe() const { return engine::describe(fingerprint()); }

  const Fingerprint& fingerprint() const { return history_.last(); }
  /// The operations entered so far, including this one.
  const History& history() const { return history_; }

  /// Forgets the operation, and does not touch its memory any more.
  void abandon() { execution_.abandon(); }

 private:
  void enter(const Task& task);
  /// Publishes this rank's entry in the window. Returns the place of its memory in one word.
  std::uint64_t post_entry();
  /// The place of the regions in this rank's arena, if peers can find them there. If the arena
  /// holds only a copy of their edges, this makes the copy, and the execution works on the copy.
  std::optional<transport::ArenaOffset> offer(schedule::Space space, const Regions& regions);
  struct Located;
  const std::optional<transport::Location>& locate(const Regions& regions, Located& last);
  /// Copies the edges of the output from the arena back to the user's memory.
  void take_back(const transport::Location& output);
  void check_entry(Rank peer) const;
  /// The peer's entry for this operation, if it can still be read. Throws Error(mismatch).
  std::optional<Entry> entry_of(Rank peer) const;
  /// Whether the memory of the rank that the operation shares is registered.
  bool is_registered(const std::optional<transport::ArenaOffset>& input,
                     const std::optional<transport::ArenaOffset>& output,
                     Rank rank) const;
  /// Finds the buffers of peers in the window. Returns false if shared memory is not registered.
  bool find_peer_buffers();
  bool find_buffers_of(Rank rank);
  /// What the rank knows at the beginning. kRegistered also if only the opening can tell.
  HostMemory first_host_memory() const;

  Rank self_;
  transport::Transport& transport_;
  transport::Window* window_;
  Execution execution_;
  PlanCache plan_cache_;
  CachedPlan* plan_ = nullptr;
  std::uint64_t kind_ = 0;  // of the task that the plan is for
  History history_;
  Entry own_entry_;
  /// The buffer that was located last in the arena: programs use the same buffers repeatedly.
  struct Located {
    const void* memory = nullptr;
    Bytes size;
    std::uint64_t generation = 0;
    std::optional<transport::Location> place = {};
  };
  Located located_input_;
  Located located_output_;
  /// The output's place in the arena, if the execution works on a copy of its edges.
  std::optional<transport::Location> lent_output_;
  BufferAddresses addresses_;
  bool is_opening_ = false;
};

}  // namespace peal::engine
