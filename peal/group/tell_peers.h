// For programs whose ranks fail by exceptions: gives the text of the exception to the peers. The
// destructor of a group cannot do that, because a destructor does not see the exception.
#pragma once

#include <exception>
#include <utility>

#include "peal/group/process_group.h"

namespace peal {

/// Returns body(). If an exception leaves body, this function ends the group, as abort() does, and
/// throws the exception on. The peers throw peer_lost, "rank 1 threw: out of luck". If the
/// exception came from the group's own error, all ranks have that error already. Peers that wait in
/// a group made of this one, which the exception destroys while it unwinds, also get the text.
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
    group.abort_by_exception("an exception that is not a std::exception");
    throw;
  }
}

}  // namespace peal
