// For programs whose ranks fail by exceptions: the peers hear what was thrown. The end of a group
// alone cannot tell them that, since a destructor does not see what unwinds.
#pragma once

#include <exception>
#include <utility>

#include "peal/group/process_group.h"

namespace peal {

/// body(), and what it returns. An exception that leaves it ends the group, as abort() does, before
/// it goes on: the peers throw peer_lost, "rank 1 threw: out of luck". Where it came of the group's
/// own error, all have that already. Peers that wait in a group which was made of this one, and
/// which the exception destroys on its way, are told too.
/// Threads: as ProcessGroup::abort.
/// Errors: those of body.
template <class Body>
decltype(auto) tell_peers_of_exceptions(ProcessGroup& group, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& exception) {
    group.abort_by_exception(exception.what());
    throw;
  } catch (...) {
    group.abort_by_exception("something that is no std::exception");
    throw;
  }
}

}  // namespace peal
