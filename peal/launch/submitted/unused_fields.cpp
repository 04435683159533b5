#include "peal/launch/submitted/unused_fields.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peal::launch::submitted {

std::vector<std::string> unused_fields(const Job& job, std::string_view runner) {
  std::vector<std::string> sentences;
  if (job.priority > 0) {
    sentences.push_back(fmt::format(
        "priority is not used: the job starts at once, because --to {} has no queue", runner));
  }
  if (job.spare_nodes > 0 && runner == "local") {
    sentences.emplace_back("spare_nodes is not used: this machine is the only host");
  }
  std::vector<std::string_view> unlimited;
  for (const Role& role : job.roles) {
    if (role.image.empty() && role.resources != Resources{}) unlimited.push_back(role.name);
  }
  if (!unlimited.empty()) {
    sentences.push_back(fmt::format(
        "the resources of {} are not used: only containers have limits, and {} no image",
        fmt::join(unlimited, " and "),
        unlimited.size() == 1 ? "this role has" : "these roles have"));
  }
  return sentences;
}

}  // namespace peal::launch::submitted
