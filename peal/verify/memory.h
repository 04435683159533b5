// One rank's buffer as a map of intervals: the content of each, its last writer, and its readers
// since then. Cost grows with the number of intervals that steps make, never with the elements.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "peal/verify/expression.h"
#include "peal/verify/vector_clock.h"

namespace peal::verify {

/// A place in the sequence.
struct Site {
  Rank rank = 0;
  int operation = 0;
  int step = 0;

  friend bool operator==(const Site&, const Site&) = default;
};

enum class AccessKind : std::uint8_t {
  kRead,
  kWrite,
  kUse
};  // kUse: by the user, before and after

struct Access {
  AccessKind kind = AccessKind::kUse;
  Event event;
  Site site;

  friend bool operator==(const Access&, const Access&) = default;
};

struct Range {
  Elements begin;
  Elements count;

  Elements end() const { return begin + count; }
};

class Memory {
 public:
  /// Holds unknown values, which `users` have accessed before.
  Memory(Elements size, std::vector<Access> users);

  /// An earlier access that is not ordered before a read (or write) by an actor with this clock.
  std::optional<Access> unordered_with_read(Range range, const VectorClock& clock) const;
  std::optional<Access> unordered_with_write(Range range, const VectorClock& clock) const;
  /// A store in the range that was not read completely.
  std::optional<Access> unread_store(Range range) const;

  Content peek(Range range) const;
  Content read(Range range, const Access& by);
  /// A store that is `wanted` need not be read by a step.
  enum class Purpose : std::uint8_t { kToBeRead, kWanted };
  void write(Elements begin, const Content& content, const Access& by, Purpose purpose);
  /// Gives the whole memory back to the user, which may read and write it.
  void hand_over(const Access& by);

  Range whole() const { return {Elements(0), size_}; }

 private:
  struct Piece {
    Value first;
    Access written;             // the event at time 0 if it was never written
    std::vector<Access> reads;  // since the write, the last read of each actor
    Purpose pending = Purpose::kWanted;
  };
  using Pieces = std::map<Elements, Piece>;  // by beginning; a piece ends where the next begins

  Pieces::const_iterator holder(Elements position) const { return --pieces_.upper_bound(position); }
  Elements end_of(Pieces::const_iterator piece) const;
  void split(Elements position);

  Elements size_;
  Pieces pieces_;
};

}  // namespace peal::verify
