#include "peal/launch/slurm/slurm_commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"

namespace peal::launch::slurm {
namespace {

/// Slurm's commands try again for about a minute before they fail.
constexpr Timeout kAnswerLimit{90'000};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Answer run(std::vector<std::string> words,
           std::string_view input = {},
           std::optional<std::vector<std::string>> environment = {}) {
  return ask_program({.words = std::move(words),
                      .input = input,
                      .patience = kAnswerLimit,
                      .environment = std::move(environment),
                      .if_missing =
                          "run this on a host with the commands of Slurm, such as a login "
                          "node of the cluster"});
}

bool is_unknown(const Answer& answer) {
  return answer.exit_code != 0 &&
         (contains(answer.err, "Invalid job id") || contains(answer.err, "already completed or"));
}

/// Words of Slurm, and what to do.
struct Advice {
  std::string_view words;
  std::string_view advice;
};

constexpr std::array kAdvice = {
    Advice{"configuration file", "this host is not configured for a cluster; see SLURM_CONF"},
    Advice{"configuration source", "this host is not configured for a cluster; see SLURM_CONF"},
    Advice{"Unable to contact", "the controller does not answer; see `scontrol ping`"},
    Advice{"partition", "see `sinfo`, and engine_options.slurm in the file of the job"},
    Advice{"account", "see engine_options.slurm in the file of the job: --account"},
    Advice{
        "Requested node configuration is not available",
        "no partition has such nodes: see `sinfo -o \"%P %D %c %m %G\"`, and the resources of the "
        "job"},
    Advice{"unrecognized option", "see engine_options.slurm in the file of the job"},
    Advice{"Invalid generic resource", "see the gpus of the job, and `sinfo -o \"%P %G\"`"},
};

/// The lines with a reason: the last one, and the one before it, which is often more exact.
std::string last_lines(std::string_view err) {
  std::string text;
  std::string before;
  for (const std::string_view line : split(err, '\n')) {
    if (line.empty()) continue;
    before = text;
    text = line;
  }
  if (!before.empty()) text = before + "; " + text;
  return printable_line(text);
}

void scancel(const std::vector<std::string>& options, const std::string& job) {
  std::vector<std::string> words = {"scancel"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(job);
  const Answer answer = run(std::move(words));
  // scancel fails without a message if the job ends at this moment.
  const bool is_ending = answer.exit_code == 1 && answer.err.empty();
  if (answer.exit_code == 0 || is_unknown(answer) || is_ending) return;
  throw Error(ErrorKind::kResource, explain("cancel the job", answer.err));
}

std::vector<SlurmJob> with_name(std::vector<SlurmJob> jobs, const std::string& name) {
  std::erase_if(jobs, [&](const SlurmJob& job) { return job.name != name; });
  return jobs;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

}  // namespace

std::vector<std::string> environment_for_sbatch(std::vector<std::string> variables) {
  std::erase_if(variables, [](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return (name.starts_with("SLURM_") || name == "SLURMD_NODENAME") && name != "SLURM_CONF" &&
           name != "SLURM_CLUSTERS" && name != "SLURM_JWT";
  });
  return variables;
}

std::string explain(std::string_view during, std::string_view err) {
  const std::string lines = last_lines(err);
  const std::string says = lines.empty() ? "does not answer" : "says: " + lines;
  const auto advice =
      std::ranges::find_if(kAdvice, [&](const Advice& each) { return contains(err, each.words); });
  return fmt::format("could not {}: Slurm {}{}",
                     during,
                     says,
                     advice == kAdvice.end() ? "" : fmt::format(" ({})", advice->advice));
}

std::string submit(std::string_view script) {
  const Answer answer =
      run({"sbatch", "--parsable"}, script, environment_for_sbatch(own_environment()));
  if (answer.exit_code != 0) {
    throw Error(ErrorKind::kResource, explain("submit the job", answer.err));
  }
  // "12" or "12;cluster", with a line end.
  return answer.out.substr(0, answer.out.find_first_of(";\n"));
}

std::vector<SlurmJob> ask(const std::string& number, const std::string& name) {
  std::vector<std::string> words = {"scontrol", "show", "job", "--oneliner"};
  if (!number.empty()) words.push_back(number);
  const Answer answer = run(std::move(words));
  if (answer.exit_code == 0) {
    auto jobs = with_name(read_scontrol(answer.out), name);
    if (!jobs.empty()) return jobs;
  } else if (!is_unknown(answer)) {
    throw Error(ErrorKind::kResource, explain("ask for the job", answer.err));
  }
  // Many clusters have no accounting. Then nobody but the launcher's record knows the job.
  const Answer accounted = run({"sacct",
                                "--allocations",
                                "--noheader",
                                "--parsable2",
                                "--format=JobName,State,ExitCode",
                                number.empty() ? "--name=" + name : "--jobs=" + number});
  return accounted.exit_code == 0 ? with_name(read_sacct(accounted.out), name)
                                  : std::vector<SlurmJob>();
}

void ask_to_end(const std::string& job) {
  scancel({"--state=PENDING"}, job);
  scancel({"--state=RUNNING", "--batch", "--signal=TERM"}, job);
}

void end_now(const std::string& job) { scancel({}, job); }

}  // namespace peal::launch::slurm
