#include "peal/cli/bench_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/bench/sizes.h"
#include "peal/bench/tune.h"
#include "peal/cli/bench_words.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"

namespace peal::cli {
namespace {

constexpr const char* kBenchSummary = "Measure collectives, and compare them with other libraries";

constexpr double kLongestRound = 3600;

constexpr const char* kBenchDetails =
    R"(OP is all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather,
scatter, all_to_all, send_recv (a ping-pong between the first and the last
rank, as half of the round trip), barrier, or all.

The ranks are started on this machine, each on its own core if there are enough.
Every result is checked before it is timed. A sample is the time from the moment
when the last rank enters the operation until the last rank leaves it. Before
each operation every rank rewrites its input. Operations of up to 256 B are
timed in batches. The median and p99 are over all samples of all rounds;
"rounds" is the range of the medians of the rounds.

bytes   of the whole buffer: all_reduce, broadcast, reduce and send_recv: the
        buffer; all_gather and gather: the output of all blocks;
        reduce_scatter and scatter: the input of all blocks; all_to_all: what
        one rank sends. Rounded up to whole elements in each block
memory  peal's buffers: registered, from ProcessGroup::allocate, or foreign
algorithm  the algorithm of peal; peal config --choices shows all choices
algbw   bytes / median, in 10^9 bytes per second
busbw   algbw x 2(n-1)/n for all_reduce, (n-1)/n for operations with a block for
        each rank, 1 for others: called bus bandwidth by NCCL's tests
floor   the time of a bare probe in shared memory in the same round, divided by
        the time of the operation: the median over the rounds; the better of the
        probe's plain and streaming stores counts. Between hosts the probe is a
        bare stream that sends and receives the least bytes of each host, and
        between two hosts up to 256 B a round trip of these bytes
x PEER  the time of that peer divided by peal's: the median over the rounds

Examples:
  peal bench all_reduce
  peal bench all_reduce,broadcast --np 2,4 --bytes 4:256M --against gloo,mpi
  peal bench all --bytes 4K,1M --dtype f32,bf16 --json results.jsonl
  peal bench all_reduce --hosts-netns 2 --rate 1gbit --bytes 64M --against gloo
  peal bench --tune)";

/// Whether both paths are, or would be, the same file, and the file keeps the data written to it.
bool is_one_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  using namespace std::filesystem;
  std::error_code error;
  if (exists(a, error) && !is_regular_file(a, error)) return false;
  const auto place_of = [&](const path& file) {
    return weakly_canonical(absolute(file, error), error);
  };
  return place_of(a) == place_of(b) || equivalent(a, b, error);
}

/// Whether the path is the file of standard output, which gets the table.
bool is_standard_output(const std::string& path) {
  struct stat file {
  }, output{};
  return ::stat(path.c_str(), &file) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         S_ISREG(file.st_mode) && file.st_dev == output.st_dev && file.st_ino == output.st_ino;
}

void check_files(const BenchRequest& request) {
  const std::vector<std::pair<const char*, std::string>> files = {
      {"--json", request.json_path},
      {"--tune", request.tune_path},
      {"--baseline", request.baseline_path}};
  for (auto one = files.begin(); one != files.end(); ++one) {
    if (!one->second.empty() && is_standard_output(one->second)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} {} is the file that the table goes to; give another file",
                              one->first,
                              one->second));
    }
    for (auto other = one + 1; other != files.end(); ++other) {
      if (one->second.empty() || other->second.empty()) continue;
      if (!is_one_file(one->second, other->second)) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} and {} are one file, {}; give each its own file",
                              one->first,
                              other->first,
                              one->second));
    }
  }
}

void check(const BenchRequest& request) {
  check_files(request);
  const bool shares_memory = request.options.transport == TransportChoice::kShm;
  if (shares_memory && request.options.hosts.hosts > 0) {
    throw Error(
        ErrorKind::kUsage,
        "--transport shm (or PEAL_TRANSPORT=shm) cannot be combined with --hosts-netns: hosts "
        "share no memory");
  }
  if (request.options.measure.rounds < 1) {
    throw Error(ErrorKind::kUsage, "--rounds takes 1 or more");
  }
  const double seconds = request.options.measure.seconds;
  const bool is_round = seconds > 0 && seconds <= kLongestRound;  // false for NaN
  if (!is_round) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--seconds takes more than 0 and at most {}, as in 0.1", kLongestRound));
  }
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& app) : bench_(app.add_subcommand("bench", kBenchSummary)) {
  bench_->footer(kBenchDetails);
  add_what();
  add_how();
  add_hosts();
  add_files();
}

void BenchCommand::add_what() {
  bench_->add_option("OP", ops_, "The operations to measure")->type_name("");
  bench_->add_option("-n,--np", ranks_, "The number of ranks (also: -np, --nproc-per-node)")
      ->type_name("N[,N...]")
      ->capture_default_str();
  bench_->add_option("--bytes", sizes_, "Sizes: a list; FROM:TO multiplies by 4, FROM:TO:2 by 2")
      ->type_name("4:64M|4K,1M")
      ->capture_default_str();
  bench_
      ->add_option("--dtype",
                   dtypes_,
                   fmt::format("Element types: {}, or torch's names for them",
                               fmt::join(measured_dtypes(), ", ")))
      ->type_name("T[,T...]")
      ->capture_default_str();
  bench_->add_option("--against", peers_, "Peers: gloo, openmpi, mpich, or mpi for all MPIs")
      ->type_name("NAME[,...]");
  bench_->add_option("--memory", memory_, "peal's buffers: registered, foreign")
      ->type_name("NAME[,...]")
      ->capture_default_str();
  bench_->add_option("--transport", transport_, "The transport between peal's ranks")
      ->type_name("auto|shm|tcp")
      ->capture_default_str();
  bench_->add_flag(
      "--in-place", in_place_, "A rank's own block lies inside the buffer of all blocks");
}

void BenchCommand::add_how() {
  bench_->add_flag("--untouched", untouched_, "Do not rewrite the inputs between operations");
  bench_->add_option("--rounds", rounds_, "The number of rounds; each runs all backends")
      ->type_name("N")
      ->capture_default_str();
  bench_->add_option("--seconds", seconds_, "The time of a backend for one case in a round")
      ->type_name("S")
      ->capture_default_str();
  bench_
      ->add_flag("--tune{-}",
                 tune_path_,
                 "Measure peal's algorithms against each other, and print the best PEAL_TUNE; "
                 "--tune=FILE also writes it to FILE")
      ->type_name("");
}

void BenchCommand::add_hosts() {
  bench_
      ->add_option("--hosts-netns",
                   hosts_,
                   "Create this number of hosts as network namespaces on this machine, and "
                   "measure between them (needs root)")
      ->type_name("HOSTS");
  bench_->add_option("--ranks-per-host", ranks_per_host_, "Ranks on each of those hosts")
      ->type_name("N")
      ->capture_default_str();
  bench_->add_option("--rate", rate_, "Limit the sending rate of each of those hosts, as in tc(8)")
      ->type_name("1gbit");
  bench_
      ->add_option("--congestion",
                   congestion_,
                   "The congestion control of all TCP on those hosts, instead of the system's")
      ->type_name("NAME");
}

void BenchCommand::add_files() {
  bench_->add_option("--json", json_path_, "Also write the results there, one JSON object a line")
      ->type_name("FILE");
  bench_
      ->add_option("--baseline",
                   baseline_path_,
                   "Compare floor and x PEER with the --json of an earlier run; end with 1 if any "
                   "is worse than --tolerance allows")
      ->type_name("FILE");
  bench_->add_option("--tolerance", tolerance_, "The part of an earlier ratio that is enough")
      ->type_name("PART")
      ->capture_default_str();
}

bench::HostOptions BenchCommand::parse_hosts() const {
  const bool among_hosts = bench_->count("--hosts-netns") > 0;
  for (const char* option : {"--rate", "--ranks-per-host", "--congestion"}) {
    if (!among_hosts && bench_->count(option) > 0) {
      throw Error(ErrorKind::kUsage, fmt::format("{} needs --hosts-netns", option));
    }
  }
  if (!among_hosts) return {};
  if (bench_->count("--np") > 0) {
    throw Error(ErrorKind::kUsage,
                "--np cannot be combined with --hosts-netns: there are --ranks-per-host ranks on "
                "each host");
  }
  if (hosts_ < 2 || hosts_ > 64 || ranks_per_host_ < 1 || ranks_per_host_ > 64) {
    throw Error(ErrorKind::kUsage, "--hosts-netns takes 2 to 64, --ranks-per-host 1 to 64");
  }
  return {hosts_, ranks_per_host_, rate_, congestion_};
}

BenchRequest BenchCommand::request() const {
  for (const char* option : {"--json", "--baseline", "--against", "--rate", "--congestion"}) {
    if (bench_->count(option) > 0 && bench_->get_option(option)->as<std::string>().empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("the value of {} is empty", option));
    }
  }
  BenchRequest request;
  bench::BenchOptions& options = request.options;
  const bool tunes = bench_->count("--tune") > 0;
  options.ops = parse_ops(tunes && ops_.empty() ? std::vector<std::string>{"all"} : ops_);
  options.ranks = parse_ranks(ranks_);
  options.sizes = bench::parse_sizes(sizes_);
  options.dtypes = parse_dtypes(dtypes_);
  options.peers = parse_names("--against", "peer", peers_, bench::known_peers());
  options.memory = parse_names("--memory", "memory", memory_, {"registered", "foreign"});
  options.transport = bench_->count("--transport") > 0
                          ? parse_transport(transport_)
                          : read_config(process_environment()).config.transport;
  options.place = in_place_ ? bench::BlockPlace::kIn : bench::BlockPlace::kOut;
  options.measure.rounds = rounds_;
  options.measure.seconds = seconds_;
  options.hosts = parse_hosts();
  if (untouched_) options.measure.rewriting = bench::Rewriting::kNone;
  request.json_path = json_path_;
  request.baseline_path = baseline_path_;
  request.tolerance = parse_tolerance(tolerance_);
  if (bench_->count("--tolerance") > 0 && baseline_path_.empty()) {
    throw Error(ErrorKind::kUsage, "--tolerance needs --baseline");
  }
  if (tunes) {
    if (!options.peers.empty()) {
      throw Error(ErrorKind::kUsage,
                  "--tune measures peal alone, so --against cannot be combined with it");
    }
    if (!baseline_path_.empty()) {
      throw Error(
          ErrorKind::kUsage,
          "--tune compares algorithms with each other, so --baseline cannot be combined with it");
    }
    std::erase(options.ops, bench::Op::kSendRecv);
    if (options.ops.empty()) {
      throw Error(ErrorKind::kUsage, "--tune send_recv: there is only one algorithm for it");
    }
    options.algorithms = bench::algorithm_names();
    if (tune_path_ != "-") request.tune_path = tune_path_;
  }
  check(request);
  return request;
}

}  // namespace peal::cli
