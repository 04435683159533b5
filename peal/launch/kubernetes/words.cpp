#include "peal/launch/kubernetes/words.h"

#include <algorithm>

#include <fmt/format.h>

namespace peal::launch::kubernetes {
namespace {

// Characters that mean nothing in a text: record separator and unit separator.
constexpr char kBegin = '\x1e';
constexpr char kEnd = '\x1f';

}  // namespace

std::string unexpanded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '$') result += '$';
  }
  return result;
}

std::string mark(std::string_view name) { return fmt::format("{}{}{}", kBegin, name, kEnd); }

bool has_mark(std::string_view text) { return text.find(kBegin) != std::string_view::npos; }

std::string with_references(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == kBegin) {
      result += "$(";
    } else if (c == kEnd) {
      result += ')';
    } else {
      result += c;
      if (c == '$') result += '$';
    }
  }
  return result;
}

std::vector<std::string> shell_words(const ShellStart& start) {
  if (start.assignments.empty()) return {};
  std::string script = "export";
  for (const std::string& assignment : start.assignments) script += " " + assignment;
  script += "; exec ";
  if (!start.unset.empty() || !start.renames.empty()) script += "env ";
  for (const std::string& name : start.unset) script += fmt::format("-u {} ", name);
  for (const auto& rename : start.renames) script += fmt::format("-u {} ", rename.name_in_shell);
  for (const auto& rename : start.renames) {
    script += fmt::format("\"{}=${}\" ", rename.name, rename.name_in_shell);
  }
  script += "\"$@\"";
  return {"sh", "-c", script, "sh"};
}

bool is_for_shells(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c != '.' && c != '-'; });
}

}  // namespace peal::launch::kubernetes
