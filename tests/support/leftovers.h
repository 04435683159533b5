// The resources of a job's processes that could outlive them, as shown by /proc. For tests that
// kill jobs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <iosfwd>
#include <set>
#include <string>

namespace peal::testing {

struct Leftovers {
  std::set<pid_t> processes;
  std::set<std::uint64_t> sockets;  // inodes, of open unix and TCP sockets
  std::set<std::uint64_t> memory;   // inodes, of memfds that are open or mapped

  friend bool operator==(const Leftovers&, const Leftovers&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Leftovers& all);
};

/// The leftovers of all processes that were started with `mark` ("NAME=value") in their
/// environment, and of the processes that they forked.
Leftovers belongings_of(const std::string& mark);

/// The resources in `before` that still exist, in any process, and all processes with this mark
/// that have started since.
Leftovers left_of(const Leftovers& before, const std::string& mark);

}  // namespace peal::testing
