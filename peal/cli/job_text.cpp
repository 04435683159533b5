#include "peal/cli/job_text.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/printable.h"
#include "peal/launch/jobs/node_json.h"

namespace peal::cli {
namespace {

using launch::jobs::JobEntry;
using launch::jobs::WallTime;
using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr std::size_t kWidest = 160;  // bytes of a line of a list

std::string local_time(WallTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                     fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

/// In UTC.
std::string iso_time(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

/// At most `size` bytes, with "..." at the end if bytes are missing.
void shorten(std::string& line, std::size_t size) {
  constexpr std::string_view kMore = "...";
  if (line.size() <= size) return;
  const auto is_inside_a_letter = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
  };
  std::size_t end = size - kMore.size();
  while (end > 0 && is_inside_a_letter(line[end])) --end;
  line.resize(end);
  line += kMore;
}

/// Columns with two spaces between them. The last one has no fixed width.
std::string table(const std::vector<Row>& rows, std::size_t longest_line = std::string::npos) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    shorten(line, longest_line);
    text += line + "\n";
  }
  return text;
}

std::string state_text(launch::JobState state, const std::string& engine_state) {
  // Slurm shows FAILED for a cancelled job, because the launcher ends with 143.
  const bool misleads = state == launch::JobState::kCancelled && engine_state == "FAILED";
  if (engine_state.empty() || misleads) return fmt::format("{}", name_of(state));
  return fmt::format("{} ({})", name_of(state), printable_line(engine_state));
}

Row row_of(const launch::NodeStatus& node) {
  return {fmt::format("{}-{}", node.role, node.index),
          state_text(node.state, node.engine_state),
          node.exit_code ? fmt::format("{}", *node.exit_code) : "-",
          node.host.empty() ? "-" : printable_line(node.host),
          printable_line(node.reason)};
}

Json json_of(EndTime time) { return time ? Json(iso_time(*time)) : Json(); }

/// ASCII only, since a terminal may show the text.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

void add_line(std::string& text, std::string_view name, const std::string& value) {
  if (!value.empty()) text += fmt::format("{:<10} {}\n", name, value);
}

/// The last lines of the rank that failed first, and where more is to be read.
std::string more_about_failure(const launch::JobStatus& status) {
  std::string text;
  if (status.failed_rank && !status.last_lines.empty()) {
    const int rank = *status.failed_rank;
    text += fmt::format("\nthe last lines of rank {}:\n", rank);
    for (const std::string& line : status.last_lines) {
      text += fmt::format("  | {}\n", printable_line(line));
    }
    text += fmt::format("\nfor all of them: peal logs {} --rank {}\n", status.id, rank);
  }
  if (!status.records.empty()) {
    text += fmt::format("for the cause: peal why {}\n", printable(status.records));
  }
  return text;
}

Json json_of(const std::optional<launch::FailedAttempt>& failed) {
  if (!failed) return {};
  return {{"attempt", failed->attempt}, {"failure", failed->failure}};
}

/// By role.
Json images_of(const launch::jobs::Submission& submission) {
  Json images = Json::object();
  for (const launch::jobs::RoleRecord& role : submission.roles) {
    if (!role.image.empty()) images[role.name] = role.image;
  }
  return images;
}

void add_end(const launch::JobStatus& status, Json& json) {
  json["exit_code"] = status.exit_code ? Json(*status.exit_code) : Json();
  json["cause"] = status.cause ? Json(name_of(*status.cause)) : Json();
}

}  // namespace

std::string end_sentence(const launch::JobStatus& status) {
  const std::string& why = status.first_failure.empty() ? status.reason : status.first_failure;
  return fmt::format(
      "{} {}{}", status.id, name_of(status.state), why.empty() ? "" : ": " + printable_line(why));
}

std::string status_text(const launch::jobs::Submission& submission,
                        const launch::JobStatus& status,
                        EndTime ended_at) {
  std::string text;
  add_line(text, "job", status.id);
  add_line(text, "state", state_text(status.state, status.engine_state));
  if (status.reason != status.first_failure) {
    add_line(text, "reason", printable_line(status.reason));
  }
  if (status.cause) add_line(text, "cause", std::string(name_of(*status.cause)));
  add_line(text, "failure", printable_line(status.first_failure));
  if (const auto& failed = status.failed_attempt) {
    add_line(text,
             fmt::format("attempt {}", failed->attempt),
             "failed: " + printable_line(failed->failure));
  }
  add_line(text, "exit code", status.exit_code ? fmt::format("{}", *status.exit_code) : "");
  const std::string engine_id = submission.engine_id == status.id ? "" : submission.engine_id;
  add_line(text,
           "runner",
           submission.runner + (engine_id.empty() ? "" : fmt::format(" ({})", engine_id)));
  if (!submission.host.empty()) {
    add_line(text,
             "submitted",
             fmt::format("{} on {}", local_time(submission.submitted_at), submission.host));
  }
  if (ended_at) add_line(text, "ended", local_time(*ended_at));
  for (const launch::jobs::RoleRecord& role : submission.roles) {
    if (role.image.empty()) continue;
    add_line(text, "image", fmt::format("{} ({})", printable_line(role.image), role.name));
  }
  if (status.nodes.empty()) return text;
  std::vector<Row> rows = {{"node", "state", "exit", "host", "reason"}};
  for (const launch::NodeStatus& node : status.nodes) rows.push_back(row_of(node));
  const int attempt = status.nodes.front().attempt;
  if (attempt > 0) add_line(text, "restarts", fmt::format("{}", attempt));
  return text + "\n" + table(rows) + more_about_failure(status);
}

std::string status_json(const launch::jobs::Submission& submission,
                        const launch::JobStatus& status,
                        EndTime ended_at) {
  Json nodes = Json::array();
  for (const launch::NodeStatus& node : status.nodes) nodes.push_back(launch::jobs::json_of(node));
  const Json submitted_at =
      submission.host.empty() ? Json() : Json(iso_time(submission.submitted_at));
  Json json = {{"id", status.id},
               {"name", submission.name},
               {"runner", submission.runner},
               {"engine_id", submission.engine_id},
               {"images", images_of(submission)},
               {"state", name_of(status.state)},
               {"engine_state", status.engine_state},
               {"reason", status.reason},
               {"first_failure", status.first_failure},
               {"last_lines", status.last_lines},
               {"records", status.records},
               {"submitted_at", submitted_at},
               {"ended_at", json_of(ended_at)}};
  add_end(status, json);
  json["failed_rank"] = status.failed_rank ? Json(*status.failed_rank) : Json();
  json["failed_attempt"] = json_of(status.failed_attempt);
  json["nodes"] = std::move(nodes);
  return text_of(json);
}

std::string list_text(std::span<const JobEntry> jobs) {
  std::vector<Row> rows = {{"job", "state", "runner", "nodes", "submitted", "reason"}};
  for (const JobEntry& job : jobs) {
    if (!job.damage.empty()) {
      rows.push_back(
          {job.id, "damaged", "-", "-", local_time(job.submitted_at), printable_line(job.damage)});
      continue;
    }
    const std::string& why =
        job.status.first_failure.empty() ? job.status.reason : job.status.first_failure;
    rows.push_back({job.id,
                    state_text(job.status.state, job.status.engine_state),
                    job.runner,
                    fmt::format("{}", job.nodes),
                    local_time(job.submitted_at),
                    printable_line(why)});
  }
  return table(rows, kWidest);
}

std::string list_json(std::span<const JobEntry> jobs) {
  Json list = Json::array();
  for (const JobEntry& job : jobs) {
    Json json = {{"id", job.id},
                 {"name", job.name},
                 {"runner", job.runner},
                 {"state", name_of(job.status.state)},
                 {"reason", job.status.reason},
                 {"first_failure", job.status.first_failure},
                 {"nodes", job.nodes},
                 {"submitted_at", iso_time(job.submitted_at)},
                 {"damage", job.damage}};
    add_end(job.status, json);
    json["ended_at"] = json_of(job.ended_at);
    list.push_back(std::move(json));
  }
  return text_of(list);
}

}  // namespace peal::cli
