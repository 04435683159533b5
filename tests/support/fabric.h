// Groups for tests: the native backend over each of the transports, with ranks as threads.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "peal/config/config.h"
#include "peal/group/process_group.h"

#include "tests/support/ranks.h"

namespace peal::testing {

/// The connection between the ranks of a group.
enum class Fabric : unsigned char {
  kMemory,        // shared memory of one process, with a window
  kHosts,         // the same, with windows that reach some of the ranks, as inside hosts
  kMessages,      // the same without a window, as between hosts
  kShortWrites,   // kMessages, with transfers cut into random short pieces
  kShm,           // mapped files and unix sockets
  kTcp,           // loopback
  kTcpChecked,    // the same with checksums
  kTcpEncrypted,  // the same with TLS
  kOnDemand,      // hosts that share memory, and TCP between them: each link when it is needed
};

std::string name_of(Fabric fabric);

/// How many ranks of a group share a window; 1 without a window.
int ranks_per_host(Fabric fabric, int ranks);

inline constexpr Fabric kAllFabrics[] = {Fabric::kMemory,
                                         Fabric::kHosts,
                                         Fabric::kMessages,
                                         Fabric::kShortWrites,
                                         Fabric::kShm,
                                         Fabric::kTcp,
                                         Fabric::kTcpChecked,
                                         Fabric::kTcpEncrypted,
                                         Fabric::kOnDemand};

/// Makes the groups of one job; one object for all ranks of a test.
class Job {
 public:
  Job(Fabric fabric, int ranks, Config config = {});
  ~Job();

  int ranks() const;
  /// The world group of `rank`. Called by the thread of each rank.
  ProcessGroupPtr join(Rank rank, Timeout timeout = std::chrono::minutes(10));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls body(group) on every rank of the job, each on its own thread, and collects the results.
/// The groups are destroyed at the end if the body succeeded.
template <class Body>
auto on_group(Job& job, Body body) {
  return on_ranks(job.ranks(), [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    auto result = body(*group);
    group->destroy();
    return result;
  });
}

}  // namespace peal::testing
