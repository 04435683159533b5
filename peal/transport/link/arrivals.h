// Waits for the links of a group's later ranks while the group connects. Used by links.cpp.
#pragma once

#include <poll.h>

#include <set>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/transport/link/acceptor.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// Threads: one.
class Arrivals {
 public:
  /// Adds links to `links`. Borrows both.
  Arrivals(const LinkPlan& plan, Links& links);

  /// Returns when all expected links are made.
  /// Errors: as make_links.
  void await(Deadline deadline);

 private:
  Answer decide(const LinkKey& key) const;
  /// Throws if a missing rank has ended. A rank that still has to dial keeps its listener open
  /// until all later ranks have connected to it. So a rank without a listener has ended.
  void find_ended_processes();
  Error absence() const;

  const LinkPlan& plan_;
  Links& links_;
  Acceptor acceptor_;
  std::set<LinkKey> missing_;
  std::vector<pollfd> entries_;
  TimePoint looked_ = Clock::now();
  Rank last_looked_for_ = -1;
};

}  // namespace peal::transport
