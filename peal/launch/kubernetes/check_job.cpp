#include "peal/launch/kubernetes/check_job.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::kubernetes {
namespace {

/// Variables that a job must not set in Kubernetes, beside those that no job may set.
constexpr std::array kSetInKubernetes = {"PEAL_JOB", "JOB_COMPLETION_INDEX"};
constexpr std::size_t kLongestVariable = 131'071;  // of Linux: NAME=value and a zero byte
constexpr std::size_t kLongestName = 180;          // with a role, a key of a Secret: 253

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::kUsage, text); }

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_legal_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && !name.starts_with("..") && name != "." &&
         !(name.front() >= '0' && name.front() <= '9') && std::ranges::all_of(name, [](char c) {
           return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
         });
}

void check_variables(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    if (!is_legal_name(name)) {
      refuse(
          fmt::format("Kubernetes takes no variable with the name {}: use letters, digits, "
                      "\"_\", \".\" and \"-\", at most {}, without a digit at the beginning",
                      quoted_beginning(name),
                      kLongestName));
    }
    if (std::ranges::find(kSetInKubernetes, name) != kSetInKubernetes.end()) {
      refuse(
          fmt::format("the variable {} of the job is set by peal for each node: remove it from "
                      "env",
                      name));
    }
  }
}

void check_counts(const Role& role) {
  if (role.nodes.least != role.nodes.most) {
    refuse(
        fmt::format("role \"{}\" has {} to {} nodes, and the Kubernetes runner starts a fixed "
                    "number: give one number",
                    role.name,
                    role.nodes.least,
                    role.nodes.most));
  }
}

void check_command(const Role& role) {
  if (role.image.empty()) {
    refuse(
        fmt::format("role \"{}\" has no image, and Kubernetes starts only containers: give the "
                    "role an image",
                    role.name));
  }
  if (role.command.empty() && role.ranks_per_node > 1) {
    refuse(
        fmt::format("role \"{}\" has {} ranks on each node and no command: give it the command "
                    "of its image, because `peal run` has to start it {} times",
                    role.name,
                    role.ranks_per_node,
                    role.ranks_per_node));
  }
}

/// RANK and WORLD_SIZE count nodes if `peal run` starts the ranks, so all nodes need equally many.
void check_equal_ranks(const Job& job) {
  const Role& first = job.roles.front();
  for (const Role& role : job.roles) {
    if (!role.in_world || role.ranks_per_node == first.ranks_per_node) continue;
    refuse(
        fmt::format("roles \"{}\" and \"{}\" have {} and {} ranks on each node: give all roles "
                    "the same number in Kubernetes",
                    first.name,
                    role.name,
                    first.ranks_per_node,
                    role.ranks_per_node));
  }
}

void check_label(const std::string& key, const std::string& value) {
  const auto is_legal = [](std::string_view text) {
    return text.size() <= 63 && is_letter_or_digit(text.front()) &&
           is_letter_or_digit(text.back()) && std::ranges::all_of(text, [](char c) {
             return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
           });
  };
  if (key.empty() || !is_legal(key) || (!value.empty() && !is_legal(value))) {
    refuse(
        fmt::format("Kubernetes takes no label {}={}: use at most 63 letters, digits, \"_\", "
                    "\".\" and \"-\", with a letter or digit at both ends",
                    quoted_beginning(key),
                    quoted_beginning(value)));
  }
}

}  // namespace

void check_variable_size(std::string_view name, std::string_view value) {
  if (name.size() + 1 + value.size() <= kLongestVariable) return;
  refuse(
      fmt::format("the value of the variable {} has {} bytes, and Linux starts no process with a "
                  "variable of more than {}: put the value into a file of the image",
                  name,
                  value.size(),
                  kLongestVariable));
}

void check_for_kubernetes(const Job& job) {
  check(job);
  if (!job.files.empty()) {
    refuse(fmt::format("the Kubernetes runner copies no files (\"{}\"): put them into the image",
                       job.files.front().from));
  }
  if (!job.directory.empty() && !job.directory.starts_with('/')) {
    refuse(
        fmt::format("the directory \"{}\" is not absolute, and a container has no other "
                    "directory that it could begin at: begin it with \"/\"",
                    job.directory));
  }
  check_variables(job.env);
  for (const Role& role : job.roles) {
    check_counts(role);
    check_command(role);
    check_variables(role.env);
  }
  check_equal_ranks(job);
  for (const auto& [key, value] : job.labels) check_label(key, value);
}

}  // namespace peal::launch::kubernetes
