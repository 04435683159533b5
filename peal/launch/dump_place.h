// Where the records of a failed launch are kept after its private folder is removed.
#pragma once

#include <filesystem>
#include <string>

#include "peal/rendezvous/node_place.h"

namespace peal::launch {

/// The most dumps in the folder that all launches of a user share.
inline constexpr std::size_t kDumpsKept = 16;

/// The path for the dump: in the user's log directory if one is given, else JOB.dump in
/// `parent`/peal-UID. A node of several has a path of its own, because nodes may share both
/// folders. Creates that folder if it is missing, and removes the oldest dumps in it. Errors:
/// resource, if other users own or can reach the folder.
std::string place_for_dump(const std::string& log_directory,
                           const std::string& job,
                           const std::filesystem::path& parent,
                           const rendezvous::NodePlace& node = {});

/// Removes the dump of an earlier launch from the log directory, which belongs to this launch now.
void remove_former_dump(const std::string& log_directory, const rendezvous::NodePlace& node = {});

}  // namespace peal::launch
