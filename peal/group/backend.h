// The interface that executes a group's operations. `backends/native` is peal's own implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/enum_set.h"
#include "peal/group/flight_notes.h"
#include "peal/group/work.h"

namespace peal {

/// One operation, with arguments that ProcessGroup has checked. Borrows everything that it points
/// to. Input and output are each the concatenation of their buffers, all of type `dtype`.
/// schedule::Problem says for each operation which part belongs to which rank.
struct Request {
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp reduce;
  Rank root = 0;  // the root of rooted collectives; the peer (or kAnySource) of send and recv
  Tag tag;        // for send and recv
  std::span<const ConstBuffer> input;
  std::span<const Buffer> output;
  /// The same as Problem::count and Problem::counts in schedule/schedule.h.
  Elements count;
  std::span<const Elements> counts;
  bool in_place = false;
};

/// What a backend can do. It is never asked for operations and types that are missing here.
struct Capabilities {
  std::string name;  // "native", "mpi", ...
  EnumSet<Operation> operations;
  EnumSet<DType> dtypes;
  /// Whether operations work without copies on memory from `allocate` and on registered memory.
  bool registered_memory = false;
  /// Whether an asynchronous collective can move on while the calling thread computes: because
  /// another core executes it, or a network moves its bytes. If not, an early start saves no time.
  /// May differ between ranks, so agree before the order of operations depends on it.
  bool asynchronous_progress = true;

  bool has(Operation operation) const { return operations.contains(operation); }
  bool has(DType dtype) const { return dtypes.contains(dtype); }
};

/// Shared memory or plain memory, which is released with its last owner.
using Memory = std::shared_ptr<std::byte[]>;

/// Memory stays registered until the last copy of this is destroyed; see
/// ProcessGroup::register_memory.
using Registration = std::shared_ptr<void>;

/// The error of a call on a group after its `destroy`.
Error destroyed_error(const std::string& group);

/// Whether a wait calls InitOptions::interrupt. A wait does not call it if the exception would be
/// lost, because the interrupt may throw only once.
enum class Interrupts : std::uint8_t { kAsked, kIgnored };

/// Threads: any number at once. Collectives are executed in the order in which they are given.
class Backend {
 public:
  /// Leaves the group without notifying the peers if `shutdown` was not called: peers see a lost
  /// rank.
  virtual ~Backend() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  /// Executes the operation. Returns the source for receives, otherwise `request.root`.
  virtual Rank run(const Request& request, Timeout timeout) = 0;

  /// Starts the operations, all at once: a batch of sends and receives may be in any order. The
  /// spans inside the requests may end with the call, but the memory that they name must stay.
  virtual WorkPtr start(std::span<const Request> requests, Timeout timeout) = 0;

  /// A group of the given ranks of this group, in that order. Only the members call it, with the
  /// same name, which no other group of the job has.
  virtual std::unique_ptr<Backend> subgroup(std::span<const Rank> members,
                                            const std::string& name,
                                            Timeout timeout) = 0;

  /// Memory that peers can reach, if the backend has such memory; otherwise plain memory. Zeroed.
  /// May outlive the backend.
  virtual Memory allocate(Bytes size) = 0;

  /// Makes existing memory reachable for peers, without moving it, while the registration lives.
  /// The registration may outlive the backend. Empty if the backend does not share memory.
  virtual Registration register_memory(std::span<std::byte> memory) = 0;

  /// Notes of this group in the rank's flight record; null if the backend keeps no record.
  virtual std::shared_ptr<FlightNotes> flight_notes() = 0;

  /// Calls InitOptions::interrupt, for a call of the group that waits for a Work. If the program
  /// wants to end the call, the group ends with that reason, and so does the Work.
  virtual void ask_interrupt() = 0;

  /// Ends every operation with this error, now and in future, on this rank and on the peers. The
  /// first error wins. `how`: how the rank is about to leave, for its flight record.
  virtual void abort(const Error& cause, Departure how) noexcept = 0;

  /// Errors: usage if this thread runs the interrupt inside an operation of the group, because
  /// `shutdown` would wait for its own stack.
  virtual void check_may_end() const = 0;

  /// Leaves the group and tells the peers how, so that no peer takes this rank for lost.
  /// Waits until the deadline for running collectives, and for sends that were not taken yet. Then
  /// waits without a deadline for callbacks that have begun.
  /// Errors: timeout if a collective did not end; the error from the interrupt if the interrupt
  /// ends the wait. A send or receive that did not end only fails its own Work.
  virtual void shutdown(Departure departure, Deadline deadline, Interrupts interrupts) = 0;
};

}  // namespace peal
