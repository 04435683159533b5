// A part of the store that belongs to one meeting alone, where the store is one that others can
// write to: values of an earlier meeting, put back there, are in no key that the ranks read. Used
// by the registration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// A name that nobody has used before, and the tokens of the claims for which it was made, by rank.
struct Session {
  std::string name;
  std::vector<std::string> tokens;

  std::string encode() const;
  /// Errors: mismatch for anything that `encode` did not make.
  static Session decode(std::string_view bytes);
  friend bool operator==(const Session&, const Session&) = default;
};

/// Called by the last rank to arrive, before it says that all are there. Errors: of the store.
void open_session(store::Store& meeting, std::vector<std::string> tokens);

/// The name of the session in which this rank is. It is newer than the rank's token, since it was
/// sealed together with that. Errors: usage (the session there is of other ranks), of the store.
std::string session_name(store::Store& meeting,
                         Rank self,
                         std::string_view token,
                         Deadline deadline);

}  // namespace peal::rendezvous
