#include "peal/launch/job/print_job.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/duration_text.h"
#include "peal/base/size_text.h"
#include "peal/launch/job/form_names.h"

namespace peal::launch {
namespace {

using Texts = std::vector<std::string>;
using TextsByName = std::map<std::string, std::string>;

/// Whether every reader of YAML takes the plain word as this text: a letter or a slash, after up to
/// two hyphens; then letters and signs without a meaning; and not a word for true, false or null.
bool is_plain_word(const std::string& text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_";
  constexpr std::string_view kInside =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-+=:@";
  constexpr std::array<std::string_view, 9> kWords = {
      "true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  const std::size_t first = text.find_first_not_of('-');
  if (first == std::string::npos || first > 2 || kLetters.find(text[first]) == kLetters.npos ||
      text.ends_with(':') || text.find_first_not_of(kInside) != std::string::npos) {
    return false;
  }
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return std::ranges::find(kWords, lower) == kWords.end();
}

/// The text in double quotes. Everything that a reader of YAML may change or refuse is escaped.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::string_view three = std::string_view(text).substr(at, 3);
    if (byte == '"' || byte == '\\') {
      result += {'\\', text[at]};
    } else if (byte == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && static_cast<unsigned char>(text[at + 1]) <= 0xa0) {  // C1, U+00A0
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++at]));
    } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9" || three == "\xef\xbb\xbf") {
      result += three == "\xef\xbb\xbf"   ? "\\ufeff"
                : three == "\xe2\x80\xa8" ? "\\u2028"
                                          : "\\u2029";
      at += 2;
    } else {
      result += text[at];
    }
  }
  return result + "\"";
}

/// Writes maps and lists of maps in blocks, and lists of texts in one line.
class Printer final {
 public:
  const std::string& text() const { return text_; }

  void text(std::string_view key, const std::string& value) {
    if (!value.empty()) entry(key, value);
  }
  /// A text that needs no quotes: a number, a duration, a size.
  void word(std::string_view key, std::string_view value) {
    line(fmt::format("{}: {}", key, value));
  }
  void texts(std::string_view key, const Texts& values) {
    if (!values.empty()) list(key, values);
  }
  /// A list, also if it is empty.
  void list(std::string_view key, const Texts& values) {
    Texts items;
    std::ranges::transform(values, std::back_inserter(items), scalar);
    line(fmt::format("{}: [{}]", key, fmt::join(items, ", ")));
  }
  void texts_by_name(std::string_view key, const TextsByName& values) {
    if (values.empty()) return;
    begin(key);
    for (const auto& [name, value] : values) entry(scalar(name), value);
    end();
  }
  /// An entry of a map, also if it is empty.
  void entry(std::string_view key, const std::string& value) {
    line(fmt::format("{}: {}", key, scalar(value)));
  }
  void begin(std::string_view key) {
    line(fmt::format("{}:", key));
    indent_ += 2;
  }
  void end() { indent_ -= 2; }
  /// An item of a list, which is a map.
  void begin_item() {
    is_item_ = true;
    indent_ += 2;
  }
  void end_item() { indent_ -= 2; }

 private:
  static std::string scalar(const std::string& text) {
    return is_plain_word(text) ? text : quoted(text);
  }
  void line(std::string_view content) {
    text_ += std::string(indent_ - (is_item_ ? 2 : 0), ' ');
    if (is_item_) text_ += "- ";
    is_item_ = false;
    text_ += content;
    text_ += '\n';
  }

  std::string text_;
  std::size_t indent_ = 0;
  bool is_item_ = false;  // the next line begins an item
};

void print(const Resources& resources, Printer& out) {
  if (resources == Resources()) return;
  out.begin("resources");
  if (resources.cpus) out.word("cpus", fmt::format("{}", *resources.cpus));
  if (resources.memory) out.word("memory", size_text(*resources.memory, SizeStyle::kShort));
  if (resources.gpus) out.word("gpus", fmt::format("{}", *resources.gpus));
  if (resources.shm) out.word("shm", size_text(*resources.shm, SizeStyle::kShort));
  out.end();
}

void print(const Role& role, Printer& out) {
  const Role usual;
  out.begin_item();
  out.entry("name", role.name);
  if (role.nodes.least != role.nodes.most) {
    out.word("nodes", fmt::format("{}:{}", role.nodes.least, role.nodes.most));
  } else if (role.nodes != usual.nodes) {
    out.word("nodes", fmt::format("{}", role.nodes.most));
  }
  if (role.ranks_per_node != usual.ranks_per_node) {
    out.word("ranks_per_node", fmt::format("{}", role.ranks_per_node));
  }
  if (!role.in_world) out.word("in_world", "false");
  out.text("image", role.image);
  out.texts("command", role.command);
  out.texts("args", role.args);
  out.texts_by_name("env", role.env);
  print(role.resources, out);
  out.end_item();
}

void print(const Restarts& restarts, Printer& out) {
  const Restarts usual;
  if (restarts == usual) return;
  out.begin("restarts");
  if (restarts.most != usual.most) out.word("most", fmt::format("{}", restarts.most));
  if (restarts.first_pause != usual.first_pause) {
    out.word("first_pause", duration_text(restarts.first_pause));
  }
  if (restarts.longest_pause != usual.longest_pause) {
    out.word("longest_pause", duration_text(restarts.longest_pause));
  }
  out.end();
}

void print_files(const std::vector<JobFile>& files, Printer& out) {
  if (files.empty()) return;
  out.begin("files");
  for (const JobFile& file : files) {
    out.begin_item();
    out.entry("from", file.from);
    out.entry("to", file.to);
    out.end_item();
  }
  out.end();
}

void print_limits(const Job& job, Printer& out) {
  const Job usual;
  out.text("success_role", job.success_role);
  if (job.spare_nodes != usual.spare_nodes) {
    out.word("spare_nodes", fmt::format("{}", job.spare_nodes));
  }
  print(job.restarts, out);
  if (job.max_run_time) out.word("max_run_time", duration_text(*job.max_run_time));
  if (job.warn_before) out.word("warn_before", duration_text(*job.warn_before));
  if (job.start_timeout != usual.start_timeout) {
    out.word("start_timeout", duration_text(job.start_timeout));
  }
  if (job.grace != usual.grace) out.word("grace", duration_text(job.grace));
  if (job.priority != usual.priority) out.word("priority", fmt::format("{}", job.priority));
}

}  // namespace

std::string print_job(const Job& job) {
  Printer out;
  out.entry("name", job.name);
  out.begin("roles");
  for (const Role& role : job.roles) print(role, out);
  out.end();
  out.texts_by_name("env", job.env);
  out.text("directory", job.directory);
  print_files(job.files, out);
  print_limits(job, out);
  out.texts_by_name("labels", job.labels);
  if (!job.engine_options.empty()) {
    out.begin("engine_options");
    for (const auto& [runner, options] : job.engine_options) out.list(runner, options);
    out.end();
  }
  if (job.form != JobForm::kPeal) out.entry("form", std::string(name_of(job.form)));
  out.text("document", job.document);
  return out.text();
}

}  // namespace peal::launch
