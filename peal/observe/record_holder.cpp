#include "peal/observe/record_holder.h"

#include <unistd.h>

#include <optional>

#include "peal/base/error.h"
#include "peal/observe/flight_file.h"
#include "peal/system/own_file.h"
#include "peal/system/process_state.h"

namespace peal::observe {
namespace {

std::optional<Flight> try_read_flight(const std::string& path) {
  try {
    return parse_flight(read_own_file(path));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

RecordHolder holder_of_record(const std::string& path, const std::string& job) {
  const std::optional<Flight> flight = try_read_flight(path);
  if (!flight) return RecordHolder::kNobody;
  const auto pid = static_cast<std::int64_t>(flight->pid);
  const bool is_used = !flight->departure && is_recorded_by(flight->pid, path);
  if (pid == ::getpid()) return is_used ? RecordHolder::kThisProcess : RecordHolder::kNobody;
  const bool is_of_the_job = !job.empty() && flight->job == job;
  if (is_of_the_job && is_ancestor(pid, ::getpid())) return RecordHolder::kAnother;
  const bool is_descendant = is_ancestor(::getpid(), pid);
  return is_used && !is_descendant ? RecordHolder::kAnother : RecordHolder::kNobody;
}

}  // namespace peal::observe
