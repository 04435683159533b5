#include "peal/cli/torchrun_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/cli/torchrun_table.h"
#include "peal/launch/command.h"
#include "peal/rendezvous/node_variables.h"
#include "peal/rendezvous/url.h"

namespace peal::cli {
namespace {

Error refusal(const std::string& what) { return Error(ErrorKind::kUsage, what); }

bool has(const TorchrunValues& given, std::string_view name) { return given.contains(name); }

/// The last of several values counts, as in torchrun. "" if the option is not given.
std::string text_of(const TorchrunValues& given, std::string_view name) {
  const auto found = given.find(name);
  return found == given.end() || found->second.empty() ? "" : found->second.back();
}

int whole_number(std::string_view name, const std::string& text) {
  if (const auto number = try_parse_number<int>(text); number && *number >= 0) return *number;
  throw refusal(
      fmt::format("{} {}: it takes a whole number, 0 or more", name, quoted_beginning(text)));
}

void set_endpoint(const TorchrunValues& given, rendezvous::NodeOptions& node) {
  if (!has(given, "--rdzv-endpoint")) return;
  const auto place =
      rendezvous::parse_endpoint(text_of(given, "--rdzv-endpoint"), "--rdzv-endpoint");
  const bool is_twice = (!node.master.empty() && node.master != place.host) ||
                        (node.port && place.port && node.port != place.port);
  if (is_twice) {
    throw refusal(
        "--rdzv-endpoint and --master-addr or --master-port name different places: give only one "
        "of them");
  }
  node.master = place.host;
  if (place.port) node.port = place.port;
}

void check_backend(const TorchrunValues& given) {
  if (!has(given, "--rdzv-backend")) return;
  const std::string backend = text_of(given, "--rdzv-backend");
  if (backend == "static" || backend == "c10d") return;
  throw refusal(
      fmt::format("--rdzv-backend {}: the ranks meet at a port of node 0 and need no other "
                  "program: leave the option out, and give --master-addr and "
                  "--master-port",
                  quoted_beginning(backend)));
}

/// The streams of a rank, as torchrun counts them.
enum Streams : int { kNone = 0, kOut = 1, kErr = 2, kBoth = 3 };

int streams_in(std::string_view name, const std::string& all, std::string_view text) {
  const auto number = try_parse_number<int>(text);
  if (number && *number >= kNone && *number <= kBoth) return *number;
  throw refusal(fmt::format(
      "{} {}: it takes 0, 1 (stdout), 2 (stderr) or 3 (both), or these for local ranks, as in "
      "0:3,1:1",
      name,
      quoted_beginning(all)));
}

/// The streams of each local rank: "3", or "0:1,1:3".
std::vector<int> streams_of(const TorchrunValues& given, std::string_view name, int ranks) {
  std::vector<int> streams(static_cast<std::size_t>(ranks), kNone);
  if (!has(given, name)) return streams;
  const std::string text = text_of(given, name);
  if (text.find(':') == std::string::npos) {
    std::ranges::fill(streams, streams_in(name, text, text));
    return streams;
  }
  for (const std::string_view entry : split(text, ',')) {
    const auto colon = entry.find(':');
    const auto rank = try_parse_number<int>(entry.substr(0, colon));
    const std::string_view of_rank =
        colon == std::string_view::npos ? std::string_view() : entry.substr(colon + 1);
    const int wanted = streams_in(name, text, of_rank);
    if (!rank || *rank < 0 || *rank >= ranks) {
      throw refusal(fmt::format(
          "{} {}: the local ranks go from 0 to {}", name, quoted_beginning(text), ranks - 1));
    }
    streams[static_cast<std::size_t>(*rank)] = wanted;
  }
  return streams;
}

/// Hides both streams of the local ranks that the filter leaves out.
void filter_ranks(const TorchrunValues& given, std::vector<int>& hidden) {
  constexpr std::string_view kFilter = "--local-ranks-filter";
  if (!has(given, kFilter)) return;
  const std::string text = text_of(given, kFilter);
  std::vector<int> shown;
  for (const std::string_view entry : split(text, ',')) {
    const auto rank = try_parse_number<int>(entry);
    if (!rank || *rank < 0 || *rank >= static_cast<int>(hidden.size())) {
      throw refusal(fmt::format("{} {}: it takes local ranks from 0 to {}, as in 0,1",
                                kFilter,
                                quoted_beginning(text),
                                hidden.size() - 1));
    }
    shown.push_back(*rank);
  }
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    if (std::ranges::count(shown, static_cast<int>(i)) == 0) hidden[i] = kBoth;
  }
}

}  // namespace

TorchrunOptions::TorchrunOptions(CLI::App& command) {
  for (const TorchrunOption& option : torchrun_options()) {
    const std::string names = option.other_names.empty()
                                  ? std::string(option.name)
                                  : fmt::format("{},{}", option.other_names, option.name);
    CLI::Option* made = nullptr;
    if (option.value.empty()) {
      made = command.add_flag(names)->disable_flag_override();
    } else {
      made = command.add_option(names, CLI::callback_t())
                 ->type_name(std::string(option.value))
                 ->expected(1)
                 ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    made->description(std::string(option.meaning))->group(std::string(option.heading));
    declared_.emplace(made, option.name);
  }
}

TorchrunValues TorchrunOptions::given() const {
  TorchrunValues given;
  for (const auto& [option, name] : declared_) {
    if (option->count() > 0) given[name] = option->results();
  }
  return given;
}

std::optional<CountRange> node_range_of(const TorchrunValues& given) {
  if (!has(given, "--nnodes")) return std::nullopt;
  const auto range = rendezvous::parse_node_range(text_of(given, "--nnodes"), "--nnodes");
  return range.least == range.most ? std::nullopt : std::optional(range);
}

rendezvous::NodeOptions node_options_of(const TorchrunValues& given) {
  rendezvous::NodeOptions node;
  check_backend(given);
  if (has(given, "--nnodes")) {
    const auto range = rendezvous::parse_node_range(text_of(given, "--nnodes"), "--nnodes");
    if (range.least == range.most) node.nodes = range.least;
  }
  if (has(given, "--node-rank")) {
    node.node = whole_number("--node-rank", text_of(given, "--node-rank"));
  }
  node.master = text_of(given, "--master-addr");
  if (has(given, "--master-port")) {
    const std::string text = text_of(given, "--master-port");
    node.port = rendezvous::parse_port(text);
    if (!node.port) {
      throw refusal(
          fmt::format("--master-port {}: it takes a port from 1 to 65535", quoted_beginning(text)));
    }
  }
  set_endpoint(given, node);
  node.job = text_of(given, "--rdzv-id");
  node.is_standalone = has(given, "--standalone");
  if (node.is_standalone && node.nodes.value_or(1) > 1) {
    throw refusal(
        fmt::format("--standalone means this machine only, and --nnodes {} means {} "
                    "nodes: give only one of them",
                    *node.nodes,
                    *node.nodes));
  }
  return node;
}

std::vector<std::string> command_of(const TorchrunValues& given,
                                    const std::vector<std::string>& command) {
  const bool is_module = has(given, "--module");
  const bool is_program = has(given, "--no-python");
  if (is_module && is_program) {
    throw refusal("-m names a Python module, and --no-python a program: give only one of them");
  }
  if (is_program) return command;
  if (!is_module || command.empty()) return launch::with_interpreter(command);
  std::vector<std::string> words = {"python3", "-m"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void hide_output(const TorchrunValues& given, bool is_elastic, launch::LaunchOptions& options) {
  for (const std::string_view name : {"--redirects", "--local-ranks-filter"}) {
    if (!is_elastic || !has(given, name)) continue;
    throw refusal(
        fmt::format("{} selects local ranks, and the workers of an elastic job change: "
                    "leave it out",
                    name));
  }
  std::vector<int> hidden = streams_of(given, "--redirects", options.ranks);
  const std::vector<int> shown = streams_of(given, "--tee", options.ranks);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] &= ~shown[i];
  const bool is_any = std::ranges::any_of(hidden, [](int streams) { return streams != kNone; });
  if (is_any && options.log_directory.empty()) {
    throw refusal(
        "--redirects hides output that is logged: give --log-dir, the folder of the logs");
  }
  filter_ranks(given, hidden);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const int streams = hidden[static_cast<std::size_t>(rank)];
    if ((streams & kOut) != 0) options.hidden_out.push_back(rank);
    if ((streams & kErr) != 0) options.hidden_err.push_back(rank);
  }
}

int restarts_of(const TorchrunValues& given, const rendezvous::NodePlace& node) {
  constexpr const char* kRestarts = "--max-restarts";
  if (!has(given, kRestarts)) return 0;
  const int restarts = whole_number(kRestarts, text_of(given, kRestarts));
  if (restarts == 0 || node.is_only()) return restarts;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{0} {1}: this is node {2} of {3} ({4}), and all nodes would have to start "
                  "again together: give 0, or start the ranks of all hosts by one "
                  "peal run -H",
                  kRestarts,
                  restarts,
                  node.node,
                  node.nodes,
                  node.source));
}

std::vector<std::string> notices_of(const TorchrunValues& given) {
  std::vector<std::string> notices;
  for (const TorchrunOption& option : torchrun_options()) {
    if (option.no_effect.empty() || !has(given, option.name)) continue;
    notices.push_back(fmt::format("{} has no effect: {}", option.name, option.no_effect));
  }
  return notices;
}

}  // namespace peal::cli
