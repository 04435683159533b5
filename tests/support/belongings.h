// What the processes of a job have that could outlive them, as /proc shows it. For tests that kill
// jobs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <iosfwd>
#include <set>
#include <string>

namespace peal::testing {

struct Belongings {
  std::set<pid_t> processes;
  std::set<std::uint64_t> sockets;  // inodes, of open unix and TCP sockets
  std::set<std::uint64_t> memory;   // inodes, of memfds that are open or mapped

  friend bool operator==(const Belongings&, const Belongings&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Belongings& all);
};

/// Of all processes that were started with `mark` ("NAME=value") in their environment, and of those
/// that they have forked.
Belongings belongings_of(const std::string& mark);

/// What is still there of what the processes with this mark had, whoever has it now, and any such
/// process that has come since.
Belongings left_of(const Belongings& before, const std::string& mark);

}  // namespace peal::testing
