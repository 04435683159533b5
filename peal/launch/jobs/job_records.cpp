#include "peal/launch/jobs/job_records.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/jobs/node_json.h"

namespace peal::launch::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates = {JobState::kQueued,
                                JobState::kPreparing,
                                JobState::kRunning,
                                JobState::kSucceeded,
                                JobState::kFailed,
                                JobState::kCancelling,
                                JobState::kCancelled};

/// A damaged record; the text says what is wrong with it.
struct Damage {
  std::string what;
};

const Json& field(const Json& object, const char* name) {
  if (!object.is_object()) throw Damage{"it is not an object"};
  const auto found = object.find(name);
  if (found == object.end()) throw Damage{fmt::format("the field \"{}\" is missing", name)};
  return *found;
}

Damage wrong_type(const char* name, const char* expected) {
  return Damage{fmt::format("the field \"{}\" is not {}", name, expected)};
}

std::string text_of(const Json& object, const char* name) {
  const Json& value = field(object, name);
  if (!value.is_string()) throw wrong_type(name, "a text");
  return value.get<std::string>();
}

template <class Number>
Number number_of(const Json& object, const char* name) {
  const Json& value = field(object, name);
  const bool is_whole =
      value.is_number_unsigned()
          ? std::in_range<Number>(value.get<std::uint64_t>())
          : value.is_number_integer() && std::in_range<Number>(value.get<std::int64_t>());
  if (!is_whole) throw wrong_type(name, "a whole number in range");
  return value.get<Number>();
}

template <class Read>
auto list_of(const Json& object, const char* name, Read read) {
  const Json& values = field(object, name);
  if (!values.is_array()) throw wrong_type(name, "a list");
  std::vector<decltype(read(values))> list;
  for (const Json& value : values) list.push_back(read(value));
  return list;
}

std::vector<std::string> texts_of(const Json& object, const char* name) {
  return list_of(object, name, [&](const Json& value) {
    if (!value.is_string()) throw wrong_type(name, "a list of texts");
    return value.get<std::string>();
  });
}

bool has(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null();
}

std::int64_t count_of(WallTime time) { return time.time_since_epoch().count(); }

WallTime time_of(const Json& object, const char* name) {
  return WallTime(std::chrono::milliseconds(number_of<std::int64_t>(object, name)));
}

std::optional<int> optional_number(const Json& object, const char* name) {
  if (!has(object, name)) return std::nullopt;
  return number_of<int>(object, name);
}

std::optional<int> exit_code_of(const Json& object) { return optional_number(object, "exit_code"); }

/// Nothing for a cause that only a later peal knows.
std::optional<EndCause> cause_in(const Json& object) {
  if (!has(object, "cause")) return std::nullopt;
  return try_parse_cause(text_of(object, "cause"));
}

/// Sets state and engine_state. Keeps the word of a state that only a later peal knows.
template <class Record>
void read_states(const Json& object, Record& record) {
  const std::string word = text_of(object, "state");
  record.engine_state = text_of(object, "engine_state");
  const auto known =
      std::ranges::find(kStates, word, [](JobState state) { return name_of(state); });
  record.state = known == kStates.end() ? JobState::kUnknown : *known;
  const bool is_new = known == kStates.end() && word != name_of(JobState::kUnknown);
  if (is_new && record.engine_state.empty()) record.engine_state = word;
}

Json json_of(const LauncherProcess& launcher) {
  return {{"host", launcher.machine.host},
          {"machine_id", launcher.machine.machine_id},
          {"boot_id", launcher.machine.boot_id},
          {"pid_namespace", launcher.machine.pid_namespace},
          {"pid", launcher.pid},
          {"start_time", launcher.start_time}};
}

LauncherProcess launcher_of(const Json& object) {
  return {.machine = {.host = text_of(object, "host"),
                      .machine_id = text_of(object, "machine_id"),
                      .boot_id = text_of(object, "boot_id"),
                      .pid_namespace = text_of(object, "pid_namespace")},
          .pid = number_of<std::int64_t>(object, "pid"),
          .start_time = number_of<std::uint64_t>(object, "start_time")};
}

NodeStatus node_of(const Json& object) {
  NodeStatus node{.role = text_of(object, "role"),
                  .index = number_of<int>(object, "index"),
                  .reason = text_of(object, "reason"),
                  .exit_code = exit_code_of(object),
                  .attempt = number_of<int>(object, "attempt"),
                  .engine_name = text_of(object, "engine_name"),
                  .host = text_of(object, "host")};
  read_states(object, node);
  return node;
}

Json json_of(const std::vector<NodeStatus>& nodes) {
  Json list = Json::array();
  for (const NodeStatus& node : nodes) list.push_back(jobs::json_of(node));
  return list;
}

RoleRecord role_of(const Json& object) {
  RoleRecord role{.name = text_of(object, "name"),
                  .nodes = number_of<int>(object, "nodes"),
                  .ranks_per_node = number_of<int>(object, "ranks_per_node")};
  if (has(object, "image")) role.image = text_of(object, "image");
  const bool is_legal = role.nodes >= 1 && role.ranks_per_node >= 1 &&
                        role.nodes <= kMostJobNodes && role.ranks_per_node <= kMostJobRanks;
  if (!is_legal) throw Damage{fmt::format("role {} has an impossible size", printable(role.name))};
  return role;
}

std::string printed(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <class Read>
auto decoded(std::string_view text, const std::string& path, Read read) {
  std::string problem;
  try {
    return read(Json::parse(text));
  } catch (const Damage& damage) {
    problem = damage.what;
  } catch (const Json::exception& exception) {
    problem = text.empty() ? "it is empty" : exception.what();
  }
  throw Error(ErrorKind::kResource,
              fmt::format("{} is damaged: {}. If the job has ended, remove its folder",
                          printable(path),
                          printable(problem)));
}

bool names_a_secret(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-' && c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  constexpr std::array<std::string_view, 6> kWords = {
      "secret", "token", "password", "passwd", "credential", "apikey"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return plain.find(word) != std::string::npos; });
}

}  // namespace

WallTime wall_time_now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::vector<RoleRecord> role_records(const Job& job) {
  std::vector<RoleRecord> roles;
  for (const Role& role : job.roles) {
    roles.push_back({role.name, role.nodes.most, role.ranks_per_node, role.image});
  }
  return roles;
}

Json json_of(const NodeStatus& node) {
  Json json = {{"role", node.role},
               {"index", node.index},
               {"state", name_of(node.state)},
               {"engine_state", node.engine_state},
               {"reason", node.reason},
               {"attempt", node.attempt},
               {"engine_name", node.engine_name},
               {"host", node.host}};
  json["exit_code"] = node.exit_code ? Json(*node.exit_code) : Json();
  return json;
}

bool has_engine(const Submission& submission) {
  return submission.runner == "slurm" || submission.runner == "kubernetes";
}

std::string encode(const Submission& submission) {
  Json roles = Json::array();
  for (const RoleRecord& role : submission.roles) {
    roles.push_back({{"name", role.name},
                     {"nodes", role.nodes},
                     {"ranks_per_node", role.ranks_per_node},
                     {"image", role.image}});
  }
  Json json = {{"id", submission.id},
               {"name", submission.name},
               {"runner", submission.runner},
               {"runner_options", submission.runner_options},
               {"engine_id", submission.engine_id},
               {"roles", roles},
               {"submitted_at", count_of(submission.submitted_at)},
               {"host", submission.host},
               {"user", submission.user},
               {"directory", submission.directory},
               {"command_line", submission.command_line}};
  if (submission.launcher) json["launcher"] = json_of(*submission.launcher);
  return printed(json);
}

Submission decode_submission(std::string_view text, const std::string& path) {
  return decoded(text, path, [](const Json& json) {
    Submission submission{.id = text_of(json, "id"),
                          .name = text_of(json, "name"),
                          .runner = text_of(json, "runner"),
                          .runner_options = texts_of(json, "runner_options"),
                          .engine_id = text_of(json, "engine_id"),
                          .roles = list_of(json, "roles", role_of),
                          .submitted_at = time_of(json, "submitted_at"),
                          .host = text_of(json, "host"),
                          .user = text_of(json, "user"),
                          .directory = text_of(json, "directory"),
                          .command_line = texts_of(json, "command_line")};
    if (has(json, "launcher")) submission.launcher = launcher_of(field(json, "launcher"));
    return submission;
  });
}

std::string encode(const LauncherState& state) {
  return printed({{"launcher", json_of(state.launcher)},
                  {"state", name_of(state.state)},
                  {"engine_state", state.engine_state},
                  {"reason", state.reason},
                  {"attempt", state.attempt},
                  {"nodes", json_of(state.nodes)},
                  {"started_at", count_of(state.started_at)},
                  {"written_at", count_of(state.written_at)}});
}

LauncherState decode_state(std::string_view text, const std::string& path) {
  return decoded(text, path, [](const Json& json) {
    LauncherState state{.launcher = launcher_of(field(json, "launcher")),
                        .reason = text_of(json, "reason"),
                        .attempt = number_of<int>(json, "attempt"),
                        .nodes = list_of(json, "nodes", node_of),
                        .started_at = time_of(json, "started_at"),
                        .written_at = time_of(json, "written_at")};
    read_states(json, state);
    return state;
  });
}

std::string encode(const JobEnd& end) {
  Json json = {{"state", name_of(end.state)},
               {"engine_state", end.engine_state},
               {"reason", end.reason},
               {"first_failure", end.first_failure},
               {"last_lines", end.last_lines},
               {"records", end.records},
               {"nodes", json_of(end.nodes)},
               {"attempts", end.attempts},
               {"requeues", end.requeues},
               {"ended_at", count_of(end.ended_at)}};
  if (end.exit_code) json["exit_code"] = *end.exit_code;
  if (end.cause) json["cause"] = name_of(*end.cause);
  if (end.failed_rank) json["failed_rank"] = *end.failed_rank;
  return printed(json);
}

JobEnd decode_end(std::string_view text, const std::string& path) {
  return decoded(text, path, [](const Json& json) {
    JobEnd end{.reason = text_of(json, "reason"),
               .exit_code = exit_code_of(json),
               .cause = cause_in(json),
               .first_failure = text_of(json, "first_failure"),
               .failed_rank = optional_number(json, "failed_rank"),
               .last_lines = has(json, "last_lines") ? texts_of(json, "last_lines")
                                                     : std::vector<std::string>(),
               .records = has(json, "records") ? text_of(json, "records") : "",
               .nodes = list_of(json, "nodes", node_of),
               .attempts = number_of<int>(json, "attempts"),
               .requeues = optional_number(json, "requeues").value_or(0),
               .ended_at = time_of(json, "ended_at")};
    read_states(json, end);
    return end;
  });
}

std::string encode(const CancelRequest& request) {
  return printed(
      {{"asked_at", count_of(request.asked_at)}, {"host", request.host}, {"user", request.user}});
}

CancelRequest decode_cancel_request(std::string_view text, const std::string& path) {
  return decoded(text, path, [](const Json& json) {
    return CancelRequest{.asked_at = time_of(json, "asked_at"),
                         .host = text_of(json, "host"),
                         .user = text_of(json, "user")};
  });
}

JobEnd end_of(const JobStatus& status, WallTime ended_at) {
  int attempts = 1;
  for (const NodeStatus& node : status.nodes) attempts = std::max(attempts, node.attempt + 1);
  return {.state = status.state,
          .engine_state = status.engine_state,
          .reason = status.reason,
          .exit_code = status.exit_code,
          .cause = status.cause,
          .first_failure = status.first_failure,
          .failed_rank = status.failed_rank,
          .last_lines = status.last_lines,
          .records = status.records,
          .nodes = status.nodes,
          .attempts = attempts,
          .ended_at = ended_at};
}

std::vector<std::string> without_secrets(std::vector<std::string> arguments) {
  bool is_value = false;  // of the option before
  for (std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const bool is_secret = names_a_secret(argument.substr(0, equals));
    if (is_value && !argument.starts_with("--")) argument = "***";
    is_value = is_secret && equals == std::string::npos && argument.starts_with('-');
    if (is_secret && equals != std::string::npos)
      argument.replace(equals + 1, std::string::npos, "***");
  }
  return arguments;
}

}  // namespace peal::launch::jobs
