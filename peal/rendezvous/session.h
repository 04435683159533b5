// Protects a meeting in a store that other programs can write to. Each meeting gets a part of the
// store under a new name. So the ranks never read values of an earlier meeting that a program has
// put back. Used by the registration.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// A name that was never used before, and by rank the tokens of the claims for which it was made.
struct Session {
  std::string name;
  std::vector<std::string> tokens;

  std::string encode() const;
  /// Errors: mismatch for anything that `encode` did not make.
  static Session decode(std::string_view bytes);
  friend bool operator==(const Session&, const Session&) = default;
};

/// Called by the last rank to arrive, before it announces that all ranks are there.
/// Errors: of the store.
void open_session(store::Store& meeting, std::vector<std::string> tokens);

/// The name of this rank's session. A session that lists this rank's token was made after the
/// token, which is new in each meeting. So it is not an old session that a program has put back.
/// Errors: usage (the session there belongs to other ranks), of the store.
std::string session_name(store::Store& meeting,
                         Rank self,
                         std::string_view token,
                         Deadline deadline);

/// The name of the session of this meeting, for code that is not a rank of it. Nothing if not all
/// ranks have arrived. Errors: of the store.
std::optional<std::string> current_session(store::Store& meeting);

/// The part of the store that the groups of a session use.
std::string session_prefix(const std::string& name);

}  // namespace peal::rendezvous
