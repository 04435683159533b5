// A transport between threads of one process: for tests, and for whoever runs ranks as threads. The
// same rings and the same window as shm/, in the process's own memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/rounds.h"
#include "peal/transport/segment_layout.h"
#include "peal/transport/transport.h"

namespace peal::transport {

struct MemoryOptions {
  enum class Sharing : unsigned char { kWindow, kMessagesOnly };

  Sharing sharing = Sharing::kWindow;  // without a window, as between hosts
  /// How many neighbours a window reaches, which divides the number of ranks; all if not given.
  std::optional<int> ranks_per_host = {};
  Bytes data_ring = SegmentLayout().data_ring;
  Bytes mail_ring = SegmentLayout().mail_ring;
  Bytes stage = SegmentLayout().stage;
  Bytes arena = 1024_MiB;  // of address space, for each rank
  /// By rank: the Rounds that wait for the mail of all groups of the rank (Transport::shared_mail).
  /// If empty, each rank gets one for this group alone.
  std::vector<std::shared_ptr<Rounds>> rounds = {};
};

/// One transport for each rank, each for a thread of its own. Throws Error(resource).
/// What they share ends with the last of them.
std::vector<std::unique_ptr<Transport>> make_memory_transports(int ranks,
                                                               const MemoryOptions& options = {});

}  // namespace peal::transport
