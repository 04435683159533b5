// Texts of a job in the fields of a manifest: commands, arguments and values in which Kubernetes
// replaces $(NAME). Pure. Called by variables.cpp and pod_parts.cpp.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/job.h"
#include "peal/launch/job/references.h"

namespace peal::launch::kubernetes {

/// `text` for a field in which Kubernetes replaces $(NAME): with "$$" for each "$".
std::string unexpanded(std::string_view text);

/// Marks stand for variables that only Kubernetes knows, in a text that peal has expanded.
/// mark("RANK") in such a text becomes $(RANK) in the manifest.
std::string mark(std::string_view name);
bool has_mark(std::string_view text);
std::string with_references(std::string_view text);

/// The work of the shell before it executes a command in the container.
struct ShellStart {
  std::vector<std::string> assignments{};  // exported: "RANK=$((JOB_COMPLETION_INDEX + 1))"
  std::vector<std::string> unset{};        // the command does not get these variables
  /// Variables with names that a shell drops, such as "a.b": the shell has their values as
  /// NAME_IN_SHELL.
  struct Rename {
    std::string name;
    std::string name_in_shell;
  };
  std::vector<Rename> renames{};
};

/// {"sh", "-c", SCRIPT, "sh"}: executes the words that follow. The script contains only names of
/// variables, and no other text of the job. Empty if there are no assignments.
std::vector<std::string> shell_words(const ShellStart& start);

/// Whether a shell keeps a variable of this name.
bool is_for_shells(std::string_view name);

}  // namespace peal::launch::kubernetes
