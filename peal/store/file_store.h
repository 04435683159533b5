// A store in a file that all ranks can open: no server, and no port. docs/decisions/0006 tells how
// it knows what an earlier run has left behind.
#pragma once

#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/store/store.h"

namespace peal::store {

struct FileStoreOptions {
  /// How many may join; who comes when all have joined waits for their end. 0: any number.
  int members = 0;
  /// Bounds each call that has no deadline of its own.
  Timeout timeout = std::chrono::minutes(5);
};

/// Opens the store in the file at `path`, which is made if it is not there. A file that nobody has
/// open (an earlier run crashed) is as good as none; a file that is no store is left alone. The
/// last handle that is destroyed removes the file.
/// Needs a file system with working fcntl locks. A forked child has no handle: it opens one of its
/// own. Destroying its copy of the parent's changes nothing.
/// Errors: usage (the file is no store), timeout (it serves another job that does not end),
/// resource. Throws Interrupted.
std::unique_ptr<Store> open_file_store(const std::string& path,
                                       FileStoreOptions options,
                                       Deadline deadline,
                                       const Interrupt& interrupt = {});

}  // namespace peal::store
