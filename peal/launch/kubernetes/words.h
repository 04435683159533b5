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

/// A text that was expanded by peal, with marks for variables that only Kubernetes knows.
/// mark("RANK") in an expanded text becomes $(RANK) in the manifest.
std::string mark(std::string_view name);
bool has_mark(std::string_view text);
std::string with_references(std::string_view text);

/// The start of a command in the container, for what the shell has to do before.
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

/// {"sh", "-c", SCRIPT, "sh"}: executes the words that follow. The script contains no text of the
/// job but names of variables. Empty if there are no assignments.
std::vector<std::string> shell_words(const ShellStart& start);

/// Whether a shell keeps a variable of this name.
bool is_for_shells(std::string_view name);

}  // namespace peal::launch::kubernetes
