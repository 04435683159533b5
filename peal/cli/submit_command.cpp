#include "peal/cli/submit_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/cli/say.h"
#include "peal/cli/spelling.h"
#include "peal/cli/submission.h"
#include "peal/launch/host_list.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job/read_job.h"
#include "peal/system/text_file.h"

namespace peal::cli {
namespace {

using launch::FlagValue;
using launch::GcloudFlag;

/// The port in the plan of a job that does not start. A job that starts gets a free port.
constexpr int kExamplePort = 29500;
constexpr const char* kGcloudGroup = "gcloud's flags";

constexpr const char* kSubmitSummary = "Submit a job that a file or gcloud's flags describe";

constexpr const char* kSubmitFooter = R"(
JOB is a job file in YAML or JSON, in peal's own form or in one of gcloud's
(trainingInput, workerPoolSpecs). If flags describe the job, or --config names
the file, JOB is the name of the job. Flags override the file. All after -- is
added to the arguments of the program.

--dry-run shows the processes on the hosts of -H or --hostfile. Without them it
shows one host for each node. The port is an example.

Examples:
  peal submit job.yaml --to local
  peal submit job.yaml --to ssh -H host1,host2 --stream-logs
  peal submit job.yaml --print
  peal submit job.yaml --dry-run -H host1,host2 -- --epochs 5
  peal submit mnist --config config.yaml --worker-count 2 --print
  peal submit mnist --master-image-uri torch:2.1 --dry-run -- --epochs 5
  peal submit --display-name mnist --print \
    --worker-pool-spec=replica-count=1,container-image-uri=torch:2.1)";

/// Shows JOB and the arguments of the program in the first line of the help.
class SubmitFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: peal submit [OPTIONS] JOB [-- ARGUMENTS...]\n";
  }
};

std::string type_name(FlagValue value) {
  switch (value) {
    case FlagValue::kNumber:
      return "N";
    case FlagValue::kTier:
      return "TIER";
    case FlagValue::kTruth:
      return "BOOL";
    case FlagValue::kTexts:
    case FlagValue::kPaths:
      return "A,B,...";
    case FlagValue::kPath:
      return "PATH";
    case FlagValue::kMap:
      return "K=V,...";
    case FlagValue::kAccelerator:
      return "count=N,type=TYPE";
    case FlagValue::kPool:
      return "K=V,...";
    case FlagValue::kText:
    case FlagValue::kSwitch:
      break;
  }
  return "TEXT";
}

/// "Sets workerCount" or "Has no meaning here"
std::string description(const GcloudFlag& flag) {
  const bool is_training = !flag.training.empty();
  std::string_view path = is_training ? flag.training : flag.custom_job;
  if (path == launch::kUnused) return "Has no meaning here";
  if (path.starts_with('/')) path.remove_prefix(1);
  return fmt::format("Sets {}{}", path, is_training ? "" : " of a custom job");
}

std::vector<launch::JobHost> job_hosts(const std::vector<launch::HostSlots>& hosts) {
  std::vector<launch::JobHost> result;
  for (const launch::HostSlots& host : hosts) result.push_back({host.name, host.slots});
  return result;
}

std::string read_file(const std::string& path) {
  try {
    return read_text_file(path, launch::kLongestDocument);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", path, error.message()));
  }
}

std::vector<launch::JobHost> read_hosts(const std::string& list, const std::string& file) {
  if (!list.empty() && !file.empty()) {
    throw Error(ErrorKind::kUsage, "-H and --hostfile both name the hosts; give one of them");
  }
  try {
    if (!list.empty()) return job_hosts(launch::parse_host_list(list));
    if (!file.empty()) return job_hosts(launch::parse_hostfile(read_text_file(file)));
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}: {}", file.empty() ? "-H" : "--hostfile " + file, error.message()));
  }
  return {};
}

/// Where the job is described, and its name if the user has given one.
struct Target {
  std::string file{};  // empty: only flags describe the job
  std::string job{};
};

Target target_of(const std::string& word, const std::string& config, bool has_flags) {
  if (!config.empty()) return {config, word};
  std::error_code unknown;
  const std::filesystem::path path(word);
  const bool is_folder = std::filesystem::is_directory(path, unknown);
  if (!is_folder && std::filesystem::exists(path, unknown)) return {word, ""};
  if (has_flags) return {"", word};
  if (word.empty()) {
    throw Error(ErrorKind::kUsage, "no job given: name its file, as in peal submit job.yaml");
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: {}; a job is described by a file, or by flags such as "
                          "--master-image-uri (see peal submit --help)",
                          printable(word),
                          is_folder ? "this is a folder" : "there is no such file"));
}

/// Whether the flags describe a job. Flags without a meaning here do not.
bool describe_a_job(const std::vector<launch::GivenFlag>& flags) {
  return std::ranges::any_of(flags, [](const launch::GivenFlag& given) {
    return (!given.flag->training.empty() && given.flag->training != launch::kUnused) ||
           (!given.flag->custom_job.empty() && given.flag->custom_job != launch::kUnused);
  });
}

void check_runner(const std::string& name) {
  const auto& known = launch::kRunnerNames;
  if (name.empty() || std::ranges::find(known, name) != known.end()) return;
  const std::string_view nearest = name == "k8s" ? "kubernetes" : nearest_word(name, known);
  throw Error(ErrorKind::kUsage,
              nearest.empty() ? fmt::format("--to {}: there is no such runner, only {}",
                                            quoted_beginning(name),
                                            fmt::join(known, ", "))
                              : fmt::format("--to {}: there is no such runner; did you mean {}?",
                                            quoted_beginning(name),
                                            nearest));
}

void refuse_rank_count(const std::string& argument) {
  if (!is_rank_count(argument) && argument != "--nodes" && argument != "--nnodes") return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: set these numbers in the job: nodes and ranks_per_node of its "
                          "roles in peal's own form (--print shows it), or gcloud's flags",
                          printable(argument)));
}

/// A host for each node that the job may have, and for each spare node.
std::vector<launch::JobHost> example_hosts(const launch::Job& job) {
  std::vector<launch::JobHost> hosts;
  for (int i = 0; i < launch::node_count(job) + job.spare_nodes; ++i) {
    hosts.push_back({fmt::format("node-{}", i), 1});
  }
  return hosts;
}

std::string plan_text(const SubmitRequest& request) {
  const std::vector<launch::JobHost> hosts =
      request.hosts.empty() ? example_hosts(request.job) : request.hosts;
  const launch::MasterAddress master{hosts.front().name, kExamplePort};
  return to_text(plan_processes(request.job, hosts, master), request.job, master);
}

}  // namespace

SubmitCommand::SubmitCommand(CLI::App& app)
    : submit_(app.add_subcommand("submit", kSubmitSummary)) {
  submit_->formatter(std::make_shared<SubmitFormatter>());
  submit_->footer(kSubmitFooter);
  add_options();
  add_gcloud_flags();
}

void SubmitCommand::add_options() {
  submit_->add_option("JOB", target_, "The job file, or the name of the job")->type_name("");
  submit_->add_option("--to", request_.to, "What starts the job")
      ->type_name(fmt::format("{}", fmt::join(launch::kRunnerNames, "|")));
  submit_->add_flag("--print", request_.print, "Show the job in peal's own form; start nothing");
  submit_->add_flag("--dry-run", request_.dry_run, "Show the processes of the job; start nothing");
  submit_->add_option("-H,--hosts", hosts_, "The hosts: host1:slots,host2:slots")
      ->type_name("HOSTS")
      ->join(',');  // -H a -H b
  submit_->add_option("--hostfile", hostfile_, "A file with the hosts")->type_name("FILE");
  submit_
      ->add_option("--peal-path",
                   request_.peal_path,
                   "Where the program peal is on other hosts (the path that it has here)")
      ->type_name("PATH");
  submit_->add_flag(
      "--train-job", request_.is_train_job, "With --to kubernetes: as a TrainJob of Kubeflow");
  submit_->add_option("--config", config_, "The job file; JOB is then the name of the job")
      ->type_name("FILE")
      ->group(kGcloudGroup);
  CLI::Option* const follows =
      submit_
          ->add_flag(
              "--stream-logs", request_.stream_logs, "Follow the output of the job to its end")
          ->group(kGcloudGroup);
  submit_->add_flag("--async", is_asynchronous_, "Do not wait for the job; this is the default")
      ->group(kGcloudGroup)
      ->excludes(follows);
}

void SubmitCommand::add_gcloud_flags() {
  for (const GcloudFlag& flag : launch::gcloud_flags()) {
    CLI::Option* option = nullptr;
    if (flag.value == FlagValue::kSwitch) {
      option = submit_->add_flag(std::string(flag.name));
    } else {
      std::vector<std::string>& values = texts_[flag.name];
      option = submit_
                   ->add_option_function<std::string>(
                       std::string(flag.name),
                       [&values](const std::string& value) { values.push_back(value); })
                   ->trigger_on_parse()  // for each, if it is given several times
                   ->type_name(type_name(flag.value));
    }
    option->description(description(flag))->group(kGcloudGroup);
  }
}

void SubmitCommand::take_program_arguments(std::vector<std::string>& arguments) {
  request_.command_line = {"peal", "submit"};
  request_.command_line.insert(request_.command_line.end(), arguments.begin(), arguments.end());
  const auto end = std::ranges::find(arguments, "--");
  if (end != arguments.end()) arguments_.assign(end + 1, arguments.end());
  arguments.erase(end, arguments.end());
  std::vector<std::string> names;
  for (const CLI::Option* const option : submit_->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::vector<std::string> spelled;
  for (const std::string& argument : arguments) {
    refuse_rank_count(argument);
    if (!argument.starts_with("--")) {
      spelled.push_back(argument);
      continue;
    }
    const std::string declared = as_declared(argument);
    const std::string name = declared.substr(0, declared.find('='));
    // For "--option=" the parser would take the next argument as the value.
    const bool is_empty = declared.size() == name.size() + 1;
    spelled.push_back(is_empty ? name : declared);
    if (is_empty) spelled.emplace_back();
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string_view nearest = nearest_word(name, known);
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no option {}{}; arguments of the program come after --",
                            printable(name),
                            nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }
  arguments = std::move(spelled);
}

std::vector<launch::GivenFlag> SubmitCommand::given_flags() const {
  std::vector<launch::GivenFlag> given;
  for (const GcloudFlag& flag : launch::gcloud_flags()) {
    if (flag.value == FlagValue::kSwitch) {
      if (submit_->count(std::string(flag.name)) > 0) given.push_back({&flag});
      continue;
    }
    const std::vector<std::string>& values = texts_.at(flag.name);
    if (values.empty()) continue;
    const bool takes_last = flag.value != FlagValue::kPool;  // as gcloud does
    for (auto value = takes_last ? values.end() - 1 : values.begin(); value != values.end();
         ++value) {
      given.push_back({&flag, *value});
    }
  }
  return given;
}

SubmitRequest SubmitCommand::request() const {
  SubmitRequest request = request_;
  check_runner(request.to);
  request.hosts = read_hosts(hosts_, hostfile_);
  const std::vector<launch::GivenFlag> flags = given_flags();
  const Target target = target_of(target_, config_, describe_a_job(flags));
  request.folder = std::filesystem::path(target.file).parent_path();
  launch::Value document;
  if (!target.file.empty()) document = launch::parse_document(read_file(target.file), target.file);
  const std::string here = request.folder.empty() ? "" : std::filesystem::current_path().string();
  launch::FlaggedDocument flagged =
      launch::with_flags(std::move(document), target.job, flags, here);
  const launch::Value whole = launch::with_arguments(std::move(flagged.document), arguments_);
  launch::ReadJob read =
      launch::read_job(whole, target.file.empty() ? "job" : target.file, flagged.unused);
  request.job = std::move(read.job);
  request.notices = std::move(read.notices);
  return request;
}

int run(const SubmitRequest& request) {
  say_notices(request.notices);
  if (request.print) std::fputs(printed(request).c_str(), stdout);
  if (request.dry_run) say_notices(check_job(request));
  if (request.dry_run) std::fputs(plan_text(request).c_str(), stdout);
  if (request.print || request.dry_run) return 0;
  return submit(request);
}

}  // namespace peal::cli
