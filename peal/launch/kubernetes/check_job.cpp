#include "peal/launch/kubernetes/check_job.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::kubernetes {
namespace {

constexpr std::array kSetByPeal = {"RANK",
                                   "WORLD_SIZE",
                                   "LOCAL_RANK",
                                   "LOCAL_WORLD_SIZE",
                                   "GROUP_RANK",
                                   "MASTER_ADDR",
                                   "PEAL_JOB",
                                   "PEAL_ROLE",
                                   "PEAL_ROLE_RANK",
                                   "JOB_COMPLETION_INDEX"};
constexpr std::size_t kLongestVariable = 131'071;  // of Linux: NAME=value and a zero byte
constexpr std::size_t kLargestSecret = 1'000'000;  // Kubernetes takes 1 MiB, with some overhead
constexpr std::size_t kLongestName = 180;          // with a role, a key of a Secret: 253

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::kUsage, text); }

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// JSON has no other texts, and neither have the messages between Kubernetes and containers.
bool is_utf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

bool is_legal_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && !name.starts_with("..") && name != "." &&
         !(name.front() >= '0' && name.front() <= '9') && std::ranges::all_of(name, [](char c) {
           return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
         });
}

void check_text(const std::string& what, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    refuse(fmt::format("{} contains a zero byte, which no process can receive", what));
  }
  if (!is_utf8(text)) {
    refuse(
        fmt::format("{} is not UTF-8, and Kubernetes takes no other texts: encode it, for "
                    "example in base64, and decode it in the program",
                    what));
  }
}

/// Returns the bytes that the variables take in the Secret.
std::size_t check_variables(const std::map<std::string, std::string>& variables) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : variables) {
    if (!is_legal_name(name)) {
      refuse(
          fmt::format("Kubernetes takes no variable with the name {}: use letters, digits, "
                      "\"_\", \".\" and \"-\", at most {}, without a digit at the beginning",
                      quoted_beginning(name),
                      kLongestName));
    }
    if (std::ranges::find(kSetByPeal, name) != kSetByPeal.end()) {
      refuse(
          fmt::format("the variable {} of the job is set by peal for each node: remove it from "
                      "env",
                      name));
    }
    check_text(fmt::format("the value of the variable {}", name), value);
    if (name.size() + 1 + value.size() > kLongestVariable) {
      refuse(
          fmt::format("the value of the variable {} has {} bytes, and Linux starts no process "
                      "with a variable of more than {}: put the value into a file of the image",
                      name,
                      value.size(),
                      kLongestVariable));
    }
    bytes += name.size() + value.size();
  }
  return bytes;
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

void check_command(const Role& role, int first_rank) {
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
  if (role.command.empty() && needs_shell(role, first_rank)) {
    refuse(
        fmt::format("role \"{}\" has {} nodes and no command: give it the command of its image, "
                    "because a shell in the container has to compute RANK before it starts the "
                    "command",
                    role.name,
                    role.nodes.most));
  }
  for (const std::string& word : role.command) {
    check_text(fmt::format("the command of role \"{}\"", role.name), word);
  }
  for (const std::string& word : role.args) {
    check_text(fmt::format("an argument of role \"{}\"", role.name), word);
  }
}

void check_label(const std::string& key, const std::string& value) {
  const auto is_legal = [](std::string_view text) {
    return text.size() <= 63 && is_letter_or_digit(text.front()) &&
           is_letter_or_digit(text.back()) && std::ranges::all_of(text, [](char c) {
             return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
           });
  };
  if (key.starts_with("peal.")) {
    refuse(fmt::format("the label \"{}\" of the job is peal's own: choose another name", key));
  }
  if (key.empty() || !is_legal(key) || (!value.empty() && !is_legal(value))) {
    refuse(
        fmt::format("Kubernetes takes no label {}={}: use at most 63 letters, digits, \"_\", "
                    "\".\" and \"-\", with a letter or digit at both ends",
                    quoted_beginning(key),
                    quoted_beginning(value)));
  }
}

}  // namespace

bool needs_shell(const Role& role, int first_rank) { return first_rank > 0 && role.nodes.most > 1; }

void check_for_kubernetes(const Job& job) {
  if (job.roles.empty()) refuse("the job has no role: give it one with an image");
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
  std::size_t bytes = check_variables(job.env);
  int first_rank = 0;
  for (const Role& role : job.roles) {
    check_counts(role);
    check_command(role, first_rank);
    bytes += check_variables(role.env);
    first_rank += role.nodes.most;
  }
  if (bytes > kLargestSecret) {
    refuse(
        fmt::format("the environment has {} bytes, and a Secret of Kubernetes at most {}: put "
                    "large values into the image or a volume",
                    bytes,
                    kLargestSecret));
  }
  for (const auto& [key, value] : job.labels) check_label(key, value);
}

}  // namespace peal::launch::kubernetes
