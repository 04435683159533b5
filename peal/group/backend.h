// What carries out a group's operations. `backends/native` is peal's own engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/departure.h"
#include "peal/base/enum_set.h"
#include "peal/base/error.h"
#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal {

/// One operation, as ProcessGroup has checked it. Borrows everything that it points to.
/// Input and output are each the concatenation of their buffers, all of type `dtype`; which part of
/// it belongs to which rank is what schedule::Problem says of the operation.
struct Request {
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp reduce;
  Rank root = 0;  // of rooted collectives; the peer (or kAnySource) of send and recv
  Tag tag;        // of send and recv
  std::span<const ConstBuffer> input;
  std::span<const Buffer> output;
  /// As schedule::Problem::count and ::counts.
  Elements count;
  std::span<const Elements> counts;
  bool in_place = false;
};

/// What a backend can do. Operations and types that are missing here are never asked of it.
struct Capabilities {
  std::string name;  // "native", "mpi", ...
  EnumSet<Operation> operations;
  EnumSet<DType> dtypes;
  /// Whether operations use without copying what `allocate` returns and what is registered.
  bool registered_memory = false;

  bool has(Operation operation) const { return operations.contains(operation); }
  bool has(DType dtype) const { return dtypes.contains(dtype); }
};

/// Memory that goes back where it came from.
using Memory = std::shared_ptr<std::byte[]>;

/// Memory is registered until the last copy of this is gone; see ProcessGroup::register_memory.
using Registration = std::shared_ptr<void>;

/// Whether what waits asks InitOptions::interrupt. It is not asked where what it throws would be
/// lost, since it may throw only once.
enum class Interrupts : std::uint8_t { kAsked, kIgnored };

/// Threads: any number at once; collectives are carried out in the order in which they are given.
class Backend {
 public:
  /// Leaves the group without a word if `shutdown` was not called: peers see a lost rank.
  virtual ~Backend() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  /// Carries the operation out and returns who was the source (for receives), else `request.root`.
  virtual Rank run(const Request& request, Timeout timeout) = 0;

  /// Starts the operations, all at once: a batch of sends and receives may be in any order.
  /// The spans inside the requests may end with the call, the memory they name may not.
  virtual WorkPtr start(std::span<const Request> requests, Timeout timeout) = 0;

  /// A group of the given ranks of this one, in that order. Called by its members only, with the
  /// same name, which no other group of the job has.
  virtual std::unique_ptr<Backend> subgroup(std::span<const Rank> members,
                                            const std::string& name,
                                            Timeout timeout) = 0;

  /// Memory that peers can reach where the backend has such, plain memory elsewhere. Zeroed.
  /// Outlives the backend if need be.
  virtual Memory allocate(Bytes size) = 0;

  /// Makes memory that the caller has such as peers can reach, where it lies, as long as the
  /// registration lives, which may be longer than the backend; empty where there is no such.
  virtual Registration register_memory(std::span<std::byte> memory) = 0;

  /// Asks InitOptions::interrupt, for a call of the group that waits for a Work. If the program
  /// wants the call to end, the group ends with the reason, and so does the Work.
  virtual void ask_interrupt() = 0;

  /// Ends every operation, here and on the peers, now and in future, with this error. The first
  /// wins.
  /// `how` the rank is about to leave, for its record.
  virtual void abort(const Error& cause, Departure how) noexcept = 0;

  /// Throws Error(usage) where this thread runs the interrupt, inside an operation of the group:
  /// `shutdown` would wait for its own stack.
  virtual void check_may_end() const = 0;

  /// Leaves the group and tells the peers how, so that none takes it for a loss. Waits at most
  /// until the deadline for collectives under way and for sends that were not taken yet; then for
  /// callbacks that have begun, until they return. If a collective did not end, throws
  /// Error(timeout), or Error(peer_lost) where it leaves by an exception; the Error of what the
  /// interrupt throws if that ends the wait; a send or receive that did not only fails its own
  /// Work.
  virtual void shutdown(Departure departure, Deadline deadline, Interrupts interrupts) = 0;
};

}  // namespace peal
