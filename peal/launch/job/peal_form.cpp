// peal's own form of job files: the fields of Job, with readable values.
#include <array>
#include <limits>

#include <fmt/format.h>

#include "peal/base/printable.h"
#include "peal/launch/job/form_names.h"
#include "peal/launch/job/forms.h"

namespace peal::launch {
namespace {

/// Never here: these keys would make another form. But the error of a misspelt key may name them.
constexpr std::string_view kTrainingInput = "trainingInput";
constexpr std::string_view kWorkerPoolSpecs = "workerPoolSpecs";

constexpr int kMost = std::numeric_limits<int>::max();

/// "2", or "1:4" for 1 to 4 nodes.
NodeCount read_nodes(const Field& field) {
  const std::string& written = field.word();
  const std::size_t colon = written.find(':');
  if (colon == std::string::npos) {
    const int nodes = field.integer(1, kMostJobNodes);
    return {nodes, nodes};
  }
  const auto side = [&](std::string text) {
    Value value = field.value();
    value.text = std::move(text);
    return field.part(value, "").integer(1, kMostJobNodes);
  };
  return {side(written.substr(0, colon)), side(written.substr(colon + 1))};
}

/// A list, or one word. A text with spaces is refused, because no shell splits it.
std::vector<std::string> read_command(const Field& field) {
  if (field.is(Value::Kind::kList)) return field.texts();
  std::string word = field.text();
  if (word.find_first_of(" \t\n") == std::string::npos) return {std::move(word)};
  throw field.error(
      fmt::format("{} has spaces, and no shell splits it; write a list, as in "
                  "[python3, train.py], or [sh, -c, \"...\"] for a shell",
                  quoted_beginning(word)));
}

Resources read_resources(const Field& field) {
  const Members members(field, {"cpus", "memory", "gpus", "shm"});
  Resources resources;
  if (const auto cpus = members.take("cpus")) resources.cpus = cpus->number();
  if (const auto memory = members.take("memory")) resources.memory = memory->size();
  if (const auto gpus = members.take("gpus")) resources.gpus = gpus->integer(0, kMost);
  if (const auto shm = members.take("shm")) resources.shm = shm->size();
  return resources;
}

Role read_role(const Field& field) {
  const Members members(field,
                        {"name",
                         "nodes",
                         "ranks_per_node",
                         "image",
                         "command",
                         "args",
                         "env",
                         "resources",
                         "in_world"});
  Role role;
  role.name = members.need("name").text();
  if (const auto nodes = members.take("nodes")) role.nodes = read_nodes(*nodes);
  if (const auto ranks = members.take("ranks_per_node")) {
    role.ranks_per_node = ranks->integer(1, kMostJobRanks);
  }
  if (const auto image = members.take("image")) role.image = image->filled_text();
  if (const auto command = members.take("command")) role.command = read_command(*command);
  if (const auto args = members.take("args")) role.args = args->texts();
  if (const auto env = members.take("env")) role.env = env->texts_by_name();
  if (const auto resources = members.take("resources")) role.resources = read_resources(*resources);
  if (const auto in_world = members.take("in_world")) role.in_world = in_world->flag();
  return role;
}

std::vector<Role> read_roles(const Field& field) {
  std::vector<Role> roles;
  for (const Field& role : field.items()) roles.push_back(read_role(role));
  if (roles.empty()) throw field.error("a job needs a role");
  return roles;
}

/// "train.py", for the same path on the node, or {from: PATH, to: PATH}.
JobFile read_file(const Field& field) {
  if (field.is(Value::Kind::kScalar)) {
    std::string path = field.text();
    if (!path.starts_with('/')) return {path, path};
    throw field.error("an absolute path needs a place on the node, as in {from: /data/x, to: x}");
  }
  const Members members(field, {"from", "to"});
  JobFile file{members.need("from").text(), members.need("to").text()};
  return file;
}

Restarts read_restarts(const Field& field) {
  Restarts restarts;
  if (field.is(Value::Kind::kScalar)) {
    restarts.most = field.integer(0, kMost);
    return restarts;
  }
  const Members members(field, {"most", "first_pause", "longest_pause"});
  if (const auto most = members.take("most")) restarts.most = most->integer(0, kMost);
  if (const auto pause = members.take("first_pause")) restarts.first_pause = pause->duration();
  if (const auto pause = members.take("longest_pause")) restarts.longest_pause = pause->duration();
  return restarts;
}

std::map<std::string, std::vector<std::string>> read_engine_options(const Field& field) {
  const Members members(field, {kEngineNames.begin(), kEngineNames.end()});
  std::map<std::string, std::vector<std::string>> options;
  for (const std::string_view runner : kEngineNames) {
    if (const auto given = members.take(runner)) options[std::string(runner)] = given->texts();
  }
  return options;
}

void read_times(const Members& members, Job& job) {
  if (const auto time = members.take("max_run_time")) job.max_run_time = time->seconds();
  if (const auto time = members.take("warn_before")) job.warn_before = time->seconds();
  if (const auto time = members.take("start_timeout")) job.start_timeout = time->seconds();
  if (const auto time = members.take("grace")) job.grace = time->duration();
}

/// The variables, the folder and the files of the job.
void read_surroundings(const Members& members, Job& job) {
  if (const auto env = members.take("env")) job.env = env->texts_by_name();
  if (const auto directory = members.take("directory")) job.directory = directory->text();
  if (const auto files = members.take("files")) {
    for (const Field& file : files->items()) job.files.push_back(read_file(file));
  }
}

/// The fields that engines get.
void read_engine_fields(const Members& members, Job& job) {
  if (const auto priority = members.take("priority")) {
    job.priority = priority->integer(-1'000'000, 1'000'000);
  }
  if (const auto labels = members.take("labels")) job.labels = labels->texts_by_name();
  if (const auto options = members.take("engine_options")) {
    job.engine_options = read_engine_options(*options);
  }
}

}  // namespace

FormResult read_peal_form(const Field& document) {
  const Members members(document,
                        {"name",
                         "roles",
                         "env",
                         "directory",
                         "files",
                         "success_role",
                         "spare_nodes",
                         "restarts",
                         "max_run_time",
                         "warn_before",
                         "start_timeout",
                         "grace",
                         "priority",
                         "labels",
                         "engine_options",
                         "form",
                         "document",
                         kTrainingInput,
                         kWorkerPoolSpecs});
  Job job;
  if (const auto name = members.take("name")) job.name = name->text();
  const auto roles = members.take("roles");
  if (roles) job.roles = read_roles(*roles);
  read_surroundings(members, job);
  if (const auto role = members.take("success_role")) job.success_role = role->text();
  if (const auto spare = members.take("spare_nodes"))
    job.spare_nodes = spare->integer(0, kMostJobNodes);
  if (const auto restarts = members.take("restarts")) job.restarts = read_restarts(*restarts);
  read_times(members, job);
  read_engine_fields(members, job);
  if (const auto form = members.take("form")) job.form = read_form(*form);
  if (const auto text = members.take("document")) job.document = text->text();
  if (!roles) {
    throw document.error(
        "a job needs roles:, each with a name and a command (or trainingInput: "
        "or workerPoolSpecs:)");
  }
  return {.job = std::move(job)};
}

}  // namespace peal::launch
