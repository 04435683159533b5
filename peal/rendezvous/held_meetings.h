// The meetings whose stores this process still holds. A process that meets again checks this list,
// so that it does not wait for itself. The list belongs to the process, because its groups do not
// know each other.
#pragma once

#include <memory>
#include <string>

#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Records that this process holds the meeting `name` until the last reference to `store` is
/// dropped. A forked child holds no meetings. Threads: any.
void note_held(const std::string& name, const std::shared_ptr<store::Store>& store);

bool is_held(const std::string& name);

/// The same for this rank's place in the file at `path`. The file counts, not the spelling of the
/// path: a new file at the same path is another place. Cost: a system call.
void note_file_held(const std::string& path, Rank rank, const std::shared_ptr<store::Store>& store);
bool is_file_held(const std::string& path, Rank rank);

}  // namespace peal::rendezvous
