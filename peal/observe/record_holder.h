// Which process a record belongs to. Processes that a rank has started inherit its environment, and
// must not take over its record. Asked by init, before it makes a record.
#pragma once

#include <cstdint>
#include <string>

namespace peal::observe {

enum class RecordHolder : std::uint8_t {
  kNobody,       // there is no record, or its process is gone, or has left its group
  kThisProcess,  // it goes on with the record, in a group that it is still in
  kAnother,      // another process does
};

/// Of the record at `path`. A process that this one has started does not count as another: a job
/// inside a rank may begin before the rank itself does. If the record is of the job `job`, a living
/// process above this one holds it even when it has left its group. (Without that name its number
/// proves nothing: in a container that starts again, other processes have the same numbers.)
/// Cost: an open() where there is no record.
RecordHolder holder_of_record(const std::string& path, const std::string& job = "");

}  // namespace peal::observe
