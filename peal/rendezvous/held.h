// The meetings that this process has not let go of, so that one that meets again does not wait for
// itself. Kept for the process, since that is whose they are: its groups know nothing of each
// other.
#pragma once

#include <memory>
#include <string>

#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// From now until the last reference to the store is gone, this process holds what is called
/// `name`. A forked child holds nothing. Threads: any.
void note_held(const std::string& name, const std::shared_ptr<store::Store>& store);

bool is_held(const std::string& name);

/// The same of this rank's place in the file at `path`, however that is spelled; a file that has
/// come into its place is another. Cost: a system call.
void note_file_held(const std::string& path, Rank rank, const std::shared_ptr<store::Store>& store);
bool is_file_held(const std::string& path, Rank rank);

}  // namespace peal::rendezvous
