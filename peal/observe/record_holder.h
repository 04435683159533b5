// Finds out which process a record belongs to. Processes that a rank has started inherit its
// environment, and must not take over its record. Called by init before it makes a record.
#pragma once

#include <cstdint>
#include <string>

namespace peal::observe {

enum class RecordHolder : std::uint8_t {
  kNobody,       // no record exists, or its process has ended or has left its group
  kThisProcess,  // this process records into it, in a group that it is still in
  kAnother,      // another process does
};

/// The holder of the record at `path`. Two kinds of processes need a rule:
/// - A descendant of this process does not count as another process, because a job inside a rank
///   may begin before the rank's own group.
/// - An ancestor of this process holds the record of `job` even after it has left its group.
///   Without a job name this rule does not apply: in a restarted container, other processes have
///   the same numbers.
/// Cost: an open() if no record exists.
RecordHolder holder_of_record(const std::string& path, const std::string& job = "");

}  // namespace peal::observe
