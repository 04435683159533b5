// One rank's buffer as a map of intervals: what each holds, who wrote it last, who has read it
// since. Cost grows with the cuts that steps make, never with the elements.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "peal/verify/clock.h"
#include "peal/verify/expression.h"

namespace peal::verify {

/// Where in the sequence something stands.
struct Site {
  Rank rank = 0;
  int operation = 0;
  int step = 0;

  friend bool operator==(const Site&, const Site&) = default;
};

enum class AccessKind : std::uint8_t { kRead, kWrite, kUse };  // kUse: the user's, before and after

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
  /// Holds garbage that `users` have accessed before.
  Memory(Elements size, std::vector<Access> users);

  /// An access that somebody who knows `clock` may not read beside: its order is not known.
  std::optional<Access> unordered_with_read(Range range, const Clock& clock) const;
  std::optional<Access> unordered_with_write(Range range, const Clock& clock) const;
  /// A store of which something in the range was never read.
  std::optional<Access> unread_store(Range range) const;

  Content peek(Range range) const;
  Content read(Range range, const Access& by);
  /// A store that is `wanted` need not be read.
  enum class Purpose : std::uint8_t { kToBeRead, kWanted };
  void write(Elements begin, const Content& content, const Access& by, Purpose purpose);
  /// The whole is given back to the user, who may read and write it.
  void hand_over(const Access& by);

  Range whole() const { return {Elements(0), size_}; }

 private:
  struct Piece {
    Value first;
    Access written;             // the event at time 0 if nobody did
    std::vector<Access> reads;  // since written, the last of each actor
    Purpose pending = Purpose::kWanted;
  };
  using Pieces = std::map<Elements, Piece>;  // by beginning; each ends where the next begins

  Pieces::const_iterator holder(Elements position) const { return --pieces_.upper_bound(position); }
  Elements end_of(Pieces::const_iterator piece) const;
  void split(Elements position);

  Elements size_;
  Pieces pieces_;
};

}  // namespace peal::verify
