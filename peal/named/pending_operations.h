// The operations by name that this rank has submitted and that have not ended, by their names, and
// their entries in the flight record. A part of the state of Engine (engine.h), which has the lock.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/group/flight_notes.h"
#include "peal/named/operation.h"
#include "peal/named/stall_report.h"

namespace peal::named {

/// Threads: one at a time.
class PendingOperations final {
 public:
  /// `notes` may be null.
  explicit PendingOperations(std::shared_ptr<FlightNotes> notes) : notes_(std::move(notes)) {}

  /// Whether no operation is in flight. A join does not count.
  bool empty() const { return by_name_.empty(); }
  bool has_incoming() const { return !incoming_.empty() || join_is_incoming_; }

  /// Errors: usage (a name is in flight). Then no operation is added.
  void add(std::span<const OperationPtr> operations);

  /// The operations that the agreement does not have yet. The caller adds them to the agreement.
  std::vector<OperationPtr> take_incoming();
  /// The operation with this name; null if it is not in the agreement. Another thread may have
  /// submitted an operation that the other ranks do not know yet, while this rank has joined.
  Operation* agreed(const std::string& name) const;
  void started(const std::string& name);
  /// Completes the operation, unless it is not in the agreement.
  void complete(const std::string& name, const std::exception_ptr& error);

  // ---- join: all threads that call it at once take part in the same join
  void join();
  /// Whether this rank's join is not in the agreement yet. The caller adds it to the agreement.
  bool take_join();
  void all_have_joined();

  /// Completes all operations with `error`; each text begins with the operation. Returns the
  /// operations that were in the agreement.
  std::vector<OperationPtr> fail(const Error& error);

  /// When the first of the operations in flight was submitted; there is one.
  TimePoint oldest() const;

  // ---- the stall check
  /// The operations that have waited for at least `limit`.
  Stalled stalled(TimePoint now, Duration limit) const;
  Standing standing(const std::vector<std::string>& names) const;

 private:
  struct Entry {
    OperationPtr operation;
    FlightNotes::Place place = 0;
    bool is_agreed = false;
  };
  struct Join {
    FlightNotes::Place place = 0;
  };

  FlightNotes::Place submitted(const std::string& text) const;
  bool has(const std::string& name) const;

  std::shared_ptr<FlightNotes> notes_;
  std::unordered_map<std::string, Entry> by_name_;
  std::vector<Entry*> incoming_;
  std::unique_ptr<Join> join_;
  bool join_is_incoming_ = false;
};

}  // namespace peal::named
