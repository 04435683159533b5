#include "peal/cli/schedule_command.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/dtype.h"
#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/size_text.h"
#include "peal/base/split.h"
#include "peal/cli/bench_words.h"
#include "peal/cli/config_command.h"
#include "peal/cli/exit_codes.h"
#include "peal/config/config.h"
#include "peal/launch/rank_command.h"
#include "peal/plan/algorithm_settings.h"
#include "peal/plan/plan.h"
#include "peal/schedule/cost.h"
#include "peal/schedule/problem.h"
#include "peal/schedule/scratch.h"
#include "peal/schedule/text.h"
#include "peal/system/text_file.h"
#include "peal/verify/verify.h"

namespace peal::cli {
namespace {

using schedule::Problem;
using schedule::Schedule;

constexpr const char* kScheduleFooter = R"(
Lines that begin with # are comments: the output can be saved, changed and given
to --verify. docs/guide/schedules.md explains the steps. PEAL_ALGORITHM,
PEAL_TUNE and PEAL_STAGE have the same effect as in a job.

Exit code: 0 if the schedule is right, 1 if it is not, 2 if the arguments are
wrong or the file is not a schedule.

Examples:
  peal schedule all_reduce --np 4 --bytes 1M
  peal schedule all_gather --np 8 --hosts 2 --registered
  peal schedule broadcast --np 4 --algorithm binomial_tree > tree
  peal schedule --verify tree)";

[[noreturn]] void refuse(const std::string& words) {
  throw Error(ErrorKind::kUsage, words + "\nSee peal schedule --help");
}

Operation operation_named(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Operation operation : kAllCollectives) {
    if (name == name_of(operation)) return operation;
    names.push_back(name_of(operation));
  }
  refuse(name.empty() ? fmt::format("which operation? It is one of {}", fmt::join(names, ", "))
                      : fmt::format("there is no operation \"{}\"; the operations are {}",
                                    name,
                                    fmt::join(names, ", ")));
}

Bytes size_of_buffer(const std::string& text) {
  if (const auto size = try_parse_size(text)) return *size;
  refuse(fmt::format("--bytes {}: it takes a size, as 4096, 64K or 1MiB", text));
}

DType dtype_named(const std::string& text) {
  const std::vector<DType> dtypes = parse_dtypes(text);
  if (dtypes.size() != 1) refuse(fmt::format("--dtype {}: it takes one type", text));
  return dtypes.front();
}

std::vector<bool> registered_ranks(const std::string& text, int ranks) {
  if (text.empty()) return {};
  if (text == "all") return schedule::all_registered(ranks);
  std::vector<bool> registered(static_cast<std::size_t>(ranks));
  for (const std::string_view word : split(text, ',')) {
    const auto rank = try_parse_number<Rank>(word);
    if (!rank || *rank < 0 || *rank >= ranks) {
      refuse(
          fmt::format("--registered {}: it takes nothing, or ranks from 0 to {}", text, ranks - 1));
    }
    registered[static_cast<std::size_t>(*rank)] = true;
  }
  return registered;
}

Problem problem_of(const ScheduleRequest& request, Bytes element, const Config& config) {
  constexpr int kMostRanks = 1024;
  Problem problem{.operation = operation_named(request.operation)};
  if (request.ranks < 1 || request.ranks > kMostRanks) {
    refuse(fmt::format("--np {}: it takes 1 to {} ranks", request.ranks, kMostRanks));
  }
  if (request.hosts < 1 || request.ranks % request.hosts != 0) {
    refuse(fmt::format(
        "--hosts {}: {} ranks cannot be spread evenly over them", request.hosts, request.ranks));
  }
  if (request.root < 0 || request.root >= request.ranks) {
    refuse(fmt::format("--root {}: the ranks are 0 to {}", request.root, request.ranks - 1));
  }
  problem.ranks = request.ranks;
  problem.ranks_per_host = request.ranks / request.hosts;
  problem.root = request.root;
  problem.in_place = request.in_place || problem.operation == Operation::kBroadcast;
  problem.registered = registered_ranks(request.registered, request.ranks);
  const Bytes limit = schedule::engine_stage_limit(config.stage, problem.ranks_per_host);
  problem.stage_limit = Elements(limit / element);
  if (problem.operation != Operation::kBarrier) {
    problem.count = Elements(size_of_buffer(request.bytes) / element);
  }
  return problem;
}

std::vector<std::string_view> algorithms_for(const Problem& problem) {
  std::vector<std::string_view> names;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    if (algorithm.applies(problem)) names.push_back(algorithm.name);
  }
  return names;
}

const plan::Algorithm& algorithm_for(const ScheduleRequest& request,
                                     const Problem& problem,
                                     Bytes element,
                                     const Config& config) {
  if (request.algorithm.empty()) return plan::AlgorithmSettings(config).choose(problem, element);
  const plan::Algorithm& algorithm = plan::algorithm_named(request.algorithm);
  if (!algorithm.applies(problem)) {
    refuse(fmt::format("--algorithm {}: it cannot do this; possible: {}",
                       request.algorithm,
                       fmt::join(algorithms_for(problem), ", ")));
  }
  return algorithm;
}

std::string words(const Problem& problem, DType dtype, Bytes element) {
  const int hosts = problem.ranks / problem.ranks_per_host;
  std::string text(name_of(problem.operation));
  if (problem.operation != Operation::kBarrier) {
    text += fmt::format(" of {} ({} {})",
                        size_text(element * problem.count.value, SizeStyle::kLong),
                        problem.count.value,
                        name_of(dtype));
  }
  return text + fmt::format(", {} ranks on {} host{}", problem.ranks, hosts, hosts == 1 ? "" : "s");
}

std::string words(const schedule::Cost& cost, Elements stage, Bytes element) {
  const auto size = [&](Elements count) {
    return size_text(element * count.value, SizeStyle::kLong);
  };
  return fmt::format("{} messages with {}, {} read and written in memory, {} signals, {} of stage",
                     cost.messages,
                     size(cost.sent),
                     size(cost.touched),
                     cost.signals,
                     size(stage));
}

/// Prints the proof or the violations; returns the exit code.
int print_proof(const Schedule& schedule) {
  const std::vector<verify::Violation> violations = verify::verify(schedule);
  if (violations.empty()) {
    fmt::print("# proved: every rank ends with the right result; no race, no deadlock\n");
    return 0;
  }
  fmt::print("# not right:\n");
  for (const verify::Violation& violation : violations) {
    const auto& steps = schedule.parts[static_cast<std::size_t>(violation.rank)].steps;
    const auto step = static_cast<std::size_t>(violation.step);
    fmt::print("# rank {}{}: {}\n",
               violation.rank,
               step < steps.size() ? fmt::format(", step {} ({})", step, to_text(steps[step])) : "",
               violation.what);
  }
  return kFailure;
}

void print_rank(const Schedule& schedule, Rank rank) {
  const schedule::Part& part = schedule.parts[static_cast<std::size_t>(rank)];
  fmt::print("rank {}\n", rank);
  for (const schedule::Step& step : part.steps) fmt::print("  {}\n", to_text(step));
}

int verify_file(const std::string& path) {
  std::string text;
  try {
    text = path == "-" ? read_text(Fd(::dup(STDIN_FILENO))) : read_text_file(path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--verify: {} {}", path, error.message()));
  }
  return print_proof(schedule::parse_schedule(text));
}

}  // namespace

ScheduleCommand::ScheduleCommand(CLI::App& app)
    : schedule_(app.add_subcommand("schedule",
                                   "Print the steps of an operation, their cost and their proof")) {
  CLI::App& command = *schedule_;
  command.add_option("OPERATION", request_.operation, "all_reduce, broadcast, ...");
  command.add_option("-n,--np", request_.ranks, "The number of ranks (2)");
  command.add_option("--hosts", request_.hosts, "The number of hosts, with equally many ranks (1)");
  command.add_option("--bytes",
                     request_.bytes,
                     "The size of the buffer; for scatter, gather, all_gather, reduce_scatter and "
                     "all_to_all the size of one rank's block (1M)");
  command.add_option("--dtype", request_.dtype, "The type of its elements (f32)");
  command.add_option("--root", request_.root, "The root (0)");
  command.add_option("--algorithm", request_.algorithm, "Plan by this algorithm");
  command.add_flag("--in-place", request_.in_place, "The output is the input's memory");
  command
      .add_option("--registered",
                  request_.registered,
                  "The memory of every rank is registered, or that of these ranks: 0,2")
      ->expected(0, 1)
      ->default_str("all");
  command.add_option("--rank", request_.rank, "Print the steps of this rank only");
  command.add_option("--verify", request_.file, "Prove the schedule in this file; - is stdin");
  command.footer(kScheduleFooter);
}

int run(const ScheduleRequest& request) {
  if (!request.file.empty()) return verify_file(request.file);
  const Config config = checked_config(launch::process_variables());
  const DType dtype = dtype_named(request.dtype);
  const Bytes element = size_of(dtype);
  const Problem problem = problem_of(request, element, config);
  const plan::Algorithm& algorithm = algorithm_for(request, problem, element, config);
  if (request.rank >= problem.ranks) {
    refuse(fmt::format("--rank {}: the ranks are 0 to {}", request.rank, problem.ranks - 1));
  }
  const Schedule planned = plan_all(algorithm, problem);
  Elements stage;
  for (const schedule::Part& part : planned.parts) stage = std::max(stage, part.stage);
  fmt::print("# {}\n", words(problem, dtype, element));
  fmt::print("# by {}; possible: {}\n", algorithm.name, fmt::join(algorithms_for(problem), ", "));
  fmt::print("# the busiest rank: {}\n", words(busiest(planned), stage, element));
  const int code = print_proof(planned);
  if (request.rank >= 0) {
    print_rank(planned, request.rank);
  } else {
    fmt::print("{}", to_text(planned));
  }
  return code;
}

}  // namespace peal::cli
