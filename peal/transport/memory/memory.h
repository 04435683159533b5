// A transport between threads of one process: for tests, and for programs that run ranks as
// threads. It has the same rings and the same window as shm/, in the process's own memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/shm/mail_thread.h"
#include "peal/transport/shm/segment_layout.h"
#include "peal/transport/transport.h"

namespace peal::transport {

struct MemoryOptions {
  enum class Sharing : unsigned char { kWindow, kMessagesOnly };

  Sharing sharing = Sharing::kWindow;  // without a window, as between hosts
  /// How many neighbours a window reaches. This number divides the number of ranks. Default: all.
  std::optional<int> ranks_per_host = {};
  Bytes data_ring = SegmentLayout().data_ring;
  Bytes mail_ring = SegmentLayout().mail_ring;
  Bytes stage = SegmentLayout().stage;
  Bytes arena = 1024_MiB;  // of address space, for each rank
  /// By rank: the MailThread that waits for the mail of all groups of the rank
  /// (Transport::shared_mail). If empty, each rank gets a MailThread for this group alone.
  std::vector<std::shared_ptr<MailThread>> mail_threads = {};
};

/// Returns one transport for each rank. The thread of a rank uses its transport. Throws
/// Error(resource). The shared memory lives as long as the last transport.
std::vector<std::unique_ptr<Transport>> make_memory_transports(int ranks,
                                                               const MemoryOptions& options = {});

}  // namespace peal::transport
