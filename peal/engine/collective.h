// One collective after the other, from request to result: it enters (tells the host's other ranks
// what it is about to do), agrees on whether everybody's memory is registered, has the rank's part
// planned, and walks it. A state machine that owns no thread and, but for the watch on what staging
// costs (kernels/watched_copy.h), reads no clock; a backend drives it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/engine/fingerprint.h"
#include "peal/engine/places.h"
#include "peal/engine/planner.h"
#include "peal/engine/recipe.h"
#include "peal/engine/standing.h"
#include "peal/engine/walk.h"
#include "peal/transport/transport.h"
#include "peal/transport/window.h"

namespace peal::engine {

/// What is to be done. The memory is borrowed until the collective is done or abandoned.
struct Task {
  /// Differs from the last task's if anything else here does but the memory; 0: who knows.
  std::uint64_t kind = 0;
  schedule::Problem problem;  // access and stage_limit are filled in by the collective
  DType dtype = DType::kU8;
  ReduceOp::Kind reduce = ReduceOp::Kind::kSum;
  Regions input;
  Regions output;
};

/// Threads: one at a time.
class Collective {
 public:
  /// `stage` is how much a rank may stage where there is no window that says so.
  Collective(Rank self, int ranks, transport::Transport& transport, Planner& planner, Bytes stage);

  /// Groups of two ranks and more. The one before is done.
  void begin(const Task& task);

  /// Goes as far as it can without waiting. Throws Error(mismatch) and PeerClosed.
  Progress advance();

  /// After kBlocked: what to sleep on.
  const Blocked& blocked() { return walk_.blocked(); }
  void relent() { walk_.relent(); }

  /// For a collective that has been blocked for a while: throws Error(mismatch) if a rank of the
  /// host has entered a different operation, whether or not this one waits for that rank.
  void compare_entries() const;

  /// The ranks that it cannot go on without, and in words, with what each was last seen to do.
  std::vector<Rank> waiting_for() const { return walk_.waiting_for(); }
  std::string describe_missing() const;
  /// "all_reduce #12 (sum of 1000 f32)"
  std::string describe() const { return engine::describe(fingerprint()); }

  const Fingerprint& fingerprint() const { return history_.last(); }
  /// What has been entered, this operation included.
  const History& history() const { return history_; }

  /// Forgets the operation; its memory is not touched any more.
  void abandon() { walk_.abandon(); }

 private:
  enum class Phase : std::uint8_t { kMeeting, kWalking };

  void enter(const Task& task);
  /// Returns the place in one word.
  std::uint64_t post_entry();
  /// Where peers find the regions in the own arena, if they do. Where only a copy of their ends is
  /// there, the copy is made, and the walk works on it.
  std::optional<transport::ArenaOffset> offer(schedule::Space space, const Regions& regions);
  struct Located;
  const std::optional<transport::Location>& locate(const Regions& regions, Located& last);
  /// The output's ends, from where the walk worked on them to where they belong.
  void take_back(const transport::Location& output);
  void check_entry(Rank peer) const;
  /// What the peer has said of this operation, if that can be read. Throws Error(mismatch).
  std::optional<Entry> entry_of(Rank peer) const;
  /// Whether the memory of a rank that matters here is.
  bool is_registered(const std::optional<transport::ArenaOffset>& input,
                     const std::optional<transport::ArenaOffset>& output,
                     Rank rank) const;
  /// Finds peers' buffers in the window; false if some that matter are not registered.
  bool find_peer_buffers();
  bool find_buffers_of(Rank rank);
  void start_walk(schedule::Access access);

  Rank self_;
  transport::Transport& transport_;
  transport::Window* window_;
  Walk walk_;
  RecipeBook book_;
  Recipe* recipe_ = nullptr;
  std::uint64_t kind_ = 0;  // of the task that the recipe is for
  History history_;
  Entry own_entry_;
  /// The last that was found in the arena: the same buffers are used again and again.
  struct Located {
    const void* memory = nullptr;
    Bytes size;
    std::uint64_t generation = 0;
    std::optional<transport::Location> place = {};
  };
  Located located_input_;
  Located located_output_;
  /// Of this operation's output, if the walk does not work where it lies.
  std::optional<transport::Location> lent_output_;
  Places places_;
  Phase phase_ = Phase::kWalking;
};

}  // namespace peal::engine
