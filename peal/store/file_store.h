// A store in a file that all ranks can open. It needs no server and no port. docs/decisions/0006
// explains how it detects the remains of an earlier run.
#pragma once

#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/store/store.h"

namespace peal::store {

struct FileStoreOptions {
  /// How many handles may join; 0: any number. A further handle waits until all these have ended.
  int members = 0;
  /// Bounds each call that takes no deadline.
  Timeout timeout = std::chrono::minutes(5);
};

/// Opens the store in the file at `path`. Creates the file if it does not exist.
///   If no process has the file open (an earlier run crashed), the store begins empty.
///   A file that is not a store is not changed.
///   The last handle that is destroyed removes the file.
///   A forked child must open its own handle. Destroying its copy of the parent's handle changes
///   nothing.
/// Needs a file system with working fcntl locks.
/// Errors: usage (the file is not a store), timeout (the file serves another job that does not
/// end), resource. Throws Interrupted.
std::unique_ptr<Store> open_file_store(const std::string& path,
                                       FileStoreOptions options,
                                       Deadline deadline,
                                       const Interrupt& interrupt = {});

}  // namespace peal::store
