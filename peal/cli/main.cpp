// The program `peal`: dispatches to its commands. Under the name `horovodrun` it is `peal run`.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/bench/worker.h"
#include "peal/cli/bench_command.h"
#include "peal/cli/check_build.h"
#include "peal/cli/config_command.h"
#include "peal/cli/exit_codes.h"
#include "peal/cli/hints.h"
#include "peal/cli/job_commands.h"
#include "peal/cli/run_command.h"
#include "peal/cli/say.h"
#include "peal/cli/schedule_command.h"
#include "peal/cli/spelling.h"
#include "peal/cli/submit_command.h"
#include "peal/cli/why_command.h"
#include "peal/launch/agents/agent.h"
#include "peal/launch/containers/container_command.h"
#include "peal/launch/containers/container_rank.h"
#include "peal/launch/submitted/job_launcher.h"
#include "peal/system/fd.h"
#include "peal/system/standard_files.h"

namespace peal::cli {
namespace {

int wrong_arguments(const CLI::App& app,
                    const std::vector<std::string>& arguments,
                    const launch::Wording& wording,
                    const CLI::ParseError& error) {
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) {
    const std::string name = chosen.front()->get_name();
    const std::string program = name == "run" ? wording.program : "peal " + name;
    if (name == "submit" && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      say(fmt::format(
          "peal: {}: peal submit takes one job; arguments of the program come after --\n",
          printable(app.remaining(true).front())));
      return kUsage;
    }
    const bool lacks_job = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                           chosen.front()->get_option_no_throw("JOB") != nullptr;
    say(fmt::format("peal: {}{}\nSee {} --help\n",
                    error.what(),
                    lacks_job ? "; peal jobs lists the ids" : "",
                    program));
    return kUsage;
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  say(fmt::format("peal: {}\nSee peal --help\n", no_such_command(arguments, commands)));
  return kUsage;
}

/// The program that the user has called.
enum class Name : unsigned char { kPeal, kHorovodrun };

Name name_of(int argc, char** argv) {
  const bool is_horovodrun = argc > 0 && std::filesystem::path(argv[0]).filename() == "horovodrun";
  return is_horovodrun ? Name::kHorovodrun : Name::kPeal;
}

/// Ranks must not inherit the connection with the launcher.
Fd copy_for_agent(int fd) {
  constexpr int kAfterStandardFiles = 3;
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, kAfterStandardFiles));
}

int dispatch(Name name, std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == bench::kWorkerCommand) {
    return bench::work({arguments.begin() + 1, arguments.end()});
  }
  if (arguments == std::vector<std::string>{"agent"}) {
    launch::agents::serve_launcher(
        copy_for_agent(STDIN_FILENO), copy_for_agent(STDOUT_FILENO), PEAL_VERSION);
    return 0;
  }
  if (!arguments.empty() && arguments.front() == launch::containers::kRankWord) {
    return launch::containers::run_container_rank({arguments.begin() + 1, arguments.end()});
  }
  if (!arguments.empty() && arguments.front() == launch::containers::kEndWord) {
    return launch::containers::end_container({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.size() == 2 && arguments.front() == "job") {
    return launch::submitted::run_submitted_job(launch::jobs::JobFolder(arguments[1]),
                                                PEAL_VERSION);
  }
  CLI::App app("peal: distributed training for PyTorch", "peal");
  app.set_version_flag("--version", "peal " PEAL_VERSION);
  app.require_subcommand(1);
  const bool is_horovodrun = name == Name::kHorovodrun;
  const launch::Wording wording =
      is_horovodrun ? launch::Wording{.program = "horovodrun", .count = "-np"} : launch::Wording{};
  RunCommand run_command(
      app, is_horovodrun ? launch::Labels::kStream : launch::Labels::kRank, wording);
  SubmitCommand submit_command(app);
  const JobCommands job_commands(app);
  BenchCommand bench_command(app);
  const WhyCommand why_command(app);
  const ScheduleCommand schedule_command(app);
  CLI::App* const config =
      app.add_subcommand("config", "Show the environment variables that peal reads");
  const CLI::Option* const choices =
      config->add_flag("--choices")
          ->description("Show which algorithm is used for which operation");
  if (!arguments.empty() && arguments.front() == "run") {
    std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    run_command.take_command(rest);
    arguments.assign({"run"});
    arguments.insert(arguments.end(), rest.begin(), rest.end());
  }
  if (!arguments.empty() && arguments.front() == "submit") {
    std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    submit_command.take_program_arguments(rest);
    arguments.assign({"submit"});
    arguments.insert(arguments.end(), rest.begin(), rest.end());
  }
  if (!arguments.empty() && arguments.front() == "bench") {
    spell_as_declared(arguments);
    refuse_empty_values(arguments);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return wrong_arguments(app, arguments, wording, error);
  }
  if (config->parsed()) {
    const launch::Variables variables = launch::process_variables();
    return choices->count() > 0 ? show_choices(variables) : show_config(variables);
  }
  if (bench_command.was_asked_for()) return run(bench_command.request());
  if (why_command.was_asked_for()) return run(why_command.request());
  if (schedule_command.was_asked_for()) return run(schedule_command.request());
  if (job_commands.were_asked_for()) return job_commands.run();
  if (submit_command.was_asked_for()) return run(submit_command.request());
  if (run_command.asks_for_build()) {
    fmt::print("{}", build_table(torch_of_this_build()));
    return 0;
  }
  return run(run_command.request());
}

/// Makes each line printable. A message may contain names of files, which may contain any bytes.
std::string printable_lines(std::string_view text) {
  std::string result;
  for (const std::string_view line : split(text, '\n')) {
    result += (result.empty() ? "" : "\n") + printable(line);
  }
  return result;
}

/// Whether all printed text has been written.
bool flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  return errno == EPIPE;  // the reader closed the pipe on purpose
}

int main(int argc, char** argv) {
  open_standard_files();
  try {
    const Name name = name_of(argc, argv);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (name == Name::kHorovodrun) arguments.insert(arguments.begin(), "run");
    const int code = dispatch(name, std::move(arguments));
    if (code != 0 || flush_output()) return code;
    throw system_error("cannot write to standard output", errno);
  } catch (const Error& error) {
    say(fmt::format("peal: {}\n", printable_lines(error.message())));
    return error.kind() == ErrorKind::kUsage ? kUsage : kFailure;
  } catch (const std::exception& error) {
    say(fmt::format("peal: {}\n", printable_lines(error.what())));
    return kFailure;
  }
}

}  // namespace
}  // namespace peal::cli

int main(int argc, char** argv) { return peal::cli::main(argc, argv); }
