#include "tests/kubernetes/job_file.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace peal::launch::kubernetes {
namespace {

using Tree = nlohmann::json;

template <class Value>
void read(const Tree& tree, const char* name, Value& value) {
  if (tree.contains(name)) value = tree.at(name).get<Value>();
}

Resources resources_in(const Tree& tree) {
  Resources needs;
  if (tree.contains("cpus")) needs.cpus = tree.at("cpus").get<double>();
  if (tree.contains("memory")) needs.memory = Bytes(tree.at("memory").get<std::int64_t>());
  if (tree.contains("gpus")) needs.gpus = tree.at("gpus").get<int>();
  if (tree.contains("shm")) needs.shm = Bytes(tree.at("shm").get<std::int64_t>());
  return needs;
}

Role role_in(const Tree& tree) {
  Role role;
  read(tree, "name", role.name);
  int nodes = 1;
  read(tree, "nodes", nodes);
  role.nodes = {nodes, nodes};
  read(tree, "ranks_per_node", role.ranks_per_node);
  read(tree, "image", role.image);
  read(tree, "command", role.command);
  read(tree, "args", role.args);
  read(tree, "env", role.env);
  if (tree.contains("resources")) role.resources = resources_in(tree.at("resources"));
  return role;
}

}  // namespace

Job job_in_file(const std::string& path) {
  std::ifstream file(path);
  const Tree tree = Tree::parse(file);
  Job job;
  read(tree, "name", job.name);
  for (const Tree& role : tree.at("roles")) job.roles.push_back(role_in(role));
  read(tree, "env", job.env);
  read(tree, "directory", job.directory);
  read(tree, "success_role", job.success_role);
  read(tree, "labels", job.labels);
  read(tree, "restarts", job.restarts.most);
  read(tree, "priority", job.priority);
  if (tree.contains("max_run_time")) {
    job.max_run_time = std::chrono::seconds(tree.at("max_run_time").get<int>());
  }
  if (tree.contains("grace")) job.grace = std::chrono::milliseconds(tree.at("grace").get<int>());
  if (tree.value("form", "peal") == "trainingInput") job.form = JobForm::kTrainingInput;
  if (tree.value("form", "peal") == "workerPoolSpecs") job.form = JobForm::kWorkerPoolSpecs;
  return job;
}

}  // namespace peal::launch::kubernetes
