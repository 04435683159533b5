// The operations of one process set on this rank. Used in this folder.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/named/named_operations.h"

namespace peal::hvd {

/// An operation in flight whose handle has been released. It keeps the memory of the operation.
class InFlight {
 public:
  InFlight() = default;
  virtual ~InFlight() = default;
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  virtual bool has_ended() const = 0;
};

/// Threads: any number at once.
class ProcessSetState final {
 public:
  /// `group`: of the ranks of the set; null if this rank is not among them. `own_rank`: in the
  /// world.
  ProcessSetState(int id,
                  std::vector<Rank> ranks,
                  Rank own_rank,
                  ProcessGroupPtr group,
                  const named::Options& options);
  ~ProcessSetState() { close(); }
  ProcessSetState(const ProcessSetState&) = delete;
  ProcessSetState& operator=(const ProcessSetState&) = delete;

  int id() const { return id_; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// Of the set; -1 if this rank is not in the set.
  Rank rank() const { return rank_; }
  bool included() const { return rank_ >= 0; }
  /// The rank of the set with this rank in the world; -1 if the set does not have it.
  Rank rank_of_global(Rank global) const;

  /// Null after close() and for ranks outside of the set.
  std::shared_ptr<named::NamedOperations> operations() const;
  /// The group of the operations; null after close() and for ranks outside of the set.
  ProcessGroupPtr group() const;
  /// A group of the ranks of the set for other collectives. Made by the first call, which all ranks
  /// of the set make.
  ProcessGroupPtr other_group();

  /// 0, 1, ... for each kind of operation: in the names of operations without a name.
  std::uint64_t next_number(named::Kind kind);
  /// After all ranks have joined: ranks have submitted different numbers of operations, but number
  /// the next ones alike.
  /// `joins`: how many joins have ended. Threads that have taken part in the same join restart the
  /// numbers once.
  void restart_numbers(std::uint64_t joins);

  /// Keeps `operation` until it has ended.
  void keep(std::unique_ptr<InFlight> operation);

  /// Fails the pending operations, waits until other threads have left the operations, and leaves
  /// the set's group.
  void close();

 private:
  struct Parts {
    std::shared_ptr<named::NamedOperations> operations;
    ProcessGroupPtr group;
    ProcessGroupPtr other_group;
  };

  using Kept = Guarded<std::vector<std::unique_ptr<InFlight>>>;

  static constexpr std::size_t kKinds = 7;

  int id_;
  std::vector<Rank> ranks_;
  Rank rank_;
  mutable Guarded<Parts> parts_;
  std::array<std::atomic<std::uint64_t>, kKinds> numbers_ = {};
  Guarded<std::uint64_t> joins_{0};
  /// Must live as long as the operations, because they use the memory of the kept objects.
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

using ProcessSetPtr = std::shared_ptr<ProcessSetState>;

}  // namespace peal::hvd
