#include "peal/config/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/size_text.h"
#include "peal/system/text_file.h"

namespace peal {
namespace {

/// An error without text: the row of the table says which values are right.
Error wrong_value() { return Error(ErrorKind::kUsage, ""); }

/// "on" or "off".
bool parse_switch(std::string_view text) {
  if (text != "on" && text != "off") throw wrong_value();
  return text == "on";
}

double parse_number(std::string_view text) {
  const auto number = try_parse_number<double>(text);
  const bool is_sensible = number && *number > 0 && *number < 1e12;  // rejects inf and nan
  if (!is_sensible) throw wrong_value();
  return *number;
}

/// Rounds up to whole milliseconds. Compares the quotient, because the product of seconds with 1000
/// may be slightly too large for a value that is exact to the millisecond.
Timeout parse_seconds(std::string_view text) {
  const double seconds = parse_number(text);
  const std::int64_t nearest = std::llround(seconds * 1000);
  return Timeout(static_cast<double>(nearest) / 1000.0 < seconds ? nearest + 1 : nearest);
}

std::string print_seconds(Timeout timeout) {
  return fmt::format("{}", static_cast<double>(timeout.count()) / 1000.0);
}

Bytes parse_stage(std::string_view text) {
  const auto size = try_parse_size(text);
  if (!size || *size < 4_KiB || *size > 32_MiB) throw wrong_value();
  return *size;
}

TransportChoice parse_transport(std::string_view text) {
  for (const TransportChoice choice : kAllTransportChoices) {
    if (text == name_of(choice)) return choice;
  }
  throw wrong_value();
}

Integrity parse_integrity(std::string_view text) {
  if (text != "crc" && text != "none") throw wrong_value();
  return text == "crc" ? Integrity::kCrc : Integrity::kNone;
}

/// Parses a name of a congestion control, as the kernel allows it.
std::string parse_name(std::string_view text) {
  constexpr std::size_t kLongest = 15;
  const bool is_name = std::ranges::all_of(text, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  });
  if (text.empty() || text.size() > kLongest || !is_name) throw wrong_value();
  return std::string(text);
}

/// The most bytes of a file with a secret, rows of choices or faults.
constexpr Bytes kLongestFile = 1_MiB;

/// In bytes; the texts of the variables repeat this number. A shorter secret is too weak: a
/// stranger that records a proof can guess secrets offline.
constexpr std::size_t kShortestSecret = 16;

Secret parse_secret(std::string_view text) {
  if (text.size() < kShortestSecret) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a secret of {} characters can be guessed; make one with "
                            "`openssl rand -hex 32`",
                            text.size()));
  }
  return Secret(text);
}

Secret read_secret(std::string_view path) {
  std::string text = read_text_file(std::string(path), kLongestFile);
  const Wiped wiped(text);
  const auto line = std::string_view(text).substr(0, text.find('\n'));
  if (line.empty()) throw Error(ErrorKind::kUsage, "its first line is empty");
  return parse_secret(line);
}

/// The text is the rows, or @ and the path of a file with the rows.
void parse_tune(std::string_view text, Config& config) {
  const bool is_file = text.starts_with('@');
  if (!is_file) {
    config.tune = text;
    return;
  }
  std::string rows = read_text_file(std::string(text.substr(1)), kLongestFile);
  if (rows.empty()) throw Error(ErrorKind::kUsage, "the file is empty");
  config.tune = std::move(rows);
  config.tune_file = text.substr(1);
}

/// The text is the faults, or @ and the path of a file with the faults.
void parse_inject(std::string_view text, Config& config) {
  const bool is_file = text.starts_with('@');
  if (!is_file) {
    config.faults = parse_faults(text);
    return;
  }
  config.faults = parse_faults(read_text_file(std::string(text.substr(1)), kLongestFile));
  config.faults_file = text.substr(1);
}

const std::array kVariables = {
    Variable{"PEAL_SECRET",
             "16 characters or more",
             "The job's secret; every connection is authenticated with it.",
             [](std::string_view text, Config& c) { c.secret = parse_secret(text); },
             [](const Config& c) -> std::string { return c.secret.empty() ? "" : "(set)"; },
             Shown::kNever},
    Variable{"PEAL_SECRET_FILE",
             "the path of a file whose first line is the secret, 16 characters or more",
             "The file of the secret, if PEAL_SECRET is not set.",
             [](std::string_view text, Config& c) {
               if (c.secret.empty()) c.secret = read_secret(text);
               c.secret_file = text;
             },
             [](const Config& c) { return c.secret_file; }},
    Variable{"PEAL_INTERFACE",
             "names, ^names and CIDR, separated by commas, as in eth0,10.0.0.0/8 or ^docker0",
             "The network interfaces to use.",
             [](std::string_view text, Config& c) { c.interfaces = text; },
             [](const Config& c) { return c.interfaces; }},
    Variable{
        "PEAL_TRANSPORT",
        "auto, shm or tcp",
        "How ranks reach each other; auto is shared memory inside a host and TCP between hosts.",
        [](std::string_view text, Config& c) { c.transport = parse_transport(text); },
        [](const Config& c) { return std::string(name_of(c.transport)); }},
    Variable{"PEAL_CONGESTION",
             "a name from /proc/sys/net/ipv4/tcp_available_congestion_control, as in bbr or cubic",
             "TCP's congestion control between ranks, instead of the system's choice.",
             [](std::string_view text, Config& c) { c.congestion = parse_name(text); },
             [](const Config& c) { return c.congestion; }},
    Variable{"PEAL_INSECURE",
             "on or off",
             "Lets ranks of several machines meet without a secret: any process that reaches the "
             "port may join.",
             [](std::string_view text, Config& c) {
               c.secrecy = parse_switch(text) ? Secrecy::kWaived : Secrecy::kRequired;
             },
             [](const Config& c) -> std::string {
               return c.secrecy == Secrecy::kWaived ? "on" : "off";
             }},
    Variable{
        "PEAL_TLS",
        "on or off",
        "Encrypts and authenticates the network traffic with the job's secret; the same on all "
        "ranks.",
        [](std::string_view text, Config& c) { c.tls = parse_switch(text) ? Tls::kOn : Tls::kOff; },
        [](const Config& c) -> std::string { return c.tls == Tls::kOn ? "on" : "off"; }},
    Variable{"PEAL_INTEGRITY",
             "none or crc",
             "Adds checksums to the network traffic, beyond TCP's own; the same on all ranks. TLS "
             "includes it.",
             [](std::string_view text, Config& c) { c.integrity = parse_integrity(text); },
             [](const Config& c) -> std::string {
               return c.integrity == Integrity::kCrc ? "crc" : "none";
             }},
    Variable{
        "PEAL_VERIFY",
        "0 or 1",
        "Proves each new schedule before its first use, in groups of up to 64 ranks. The proof is "
        "for one of three cases: all ranks have registered memory, no rank has, or only this "
        "rank has. peal's tests prove the other mixes.",
        [](std::string_view text, Config& c) {
          if (text != "0" && text != "1") throw wrong_value();
          c.verify = text == "1";
        },
        [](const Config& c) -> std::string { return c.verify ? "1" : "0"; }},
    Variable{"PEAL_TIMEOUT",
             "seconds, as in 300 or 0.5",
             "How long rendezvous, connection and each operation may take. Groups of "
             "torch.distributed have a timeout of their own: timeout= of init_process_group, or 30 "
             "minutes.",
             [](std::string_view text, Config& c) { c.timeout = parse_seconds(text); },
             [](const Config& c) { return print_seconds(c.timeout); }},
    Variable{"PEAL_HEARTBEAT",
             "seconds, as in 0.1",
             "The time between two heartbeats to a rank of another host; they detect lost hosts.",
             [](std::string_view text, Config& c) { c.heartbeat = parse_seconds(text); },
             [](const Config& c) { return print_seconds(c.heartbeat); }},
    Variable{"PEAL_HEARTBEAT_LIMIT",
             "seconds, as in 0.8; at least three times PEAL_HEARTBEAT",
             "How long a host may be silent before its ranks count as lost.",
             [](std::string_view text, Config& c) { c.heartbeat_limit = parse_seconds(text); },
             [](const Config& c) { return print_seconds(c.heartbeat_limit); }},
    Variable{
        "PEAL_LINKED_AT_START",
        "a number of ranks, as in 16; 0 for none",
        "Up to this number of ranks, a group connects all its ranks with each other at its start. "
        "In a larger group, two ranks of different hosts connect when they first need each other. "
        "The same on all ranks.",
        [](std::string_view text, Config& c) {
          const auto ranks = try_parse_number<int>(text);
          if (!ranks || *ranks < 0) throw wrong_value();
          c.linked_at_start = *ranks;
        },
        [](const Config& c) { return fmt::format("{}", c.linked_at_start); }},
    Variable{
        "PEAL_ALGORITHM",
        "inline, direct, two_level, ring, recursive_doubling, halving_doubling, binomial_tree or "
        "pairwise",
        "The algorithm for every operation that it supports; the same on all ranks.",
        [](std::string_view text, Config& c) { c.algorithm = text; },
        [](const Config& c) { return c.algorithm; }},
    Variable{"PEAL_TUNE",
             "rows as in all_reduce:0-4k:inline;all_reduce:4k-inf:direct, or @ and the path of a "
             "file of them",
             "The algorithm for each operation and size; the same on all ranks. Overrides the "
             "built-in choices. `peal bench --tune` finds the best, `peal config --choices` shows "
             "the choices in effect.",
             parse_tune,
             [](const Config& c) { return c.tune_file.empty() ? c.tune : "@" + c.tune_file; }},
    Variable{"PEAL_INJECT",
             "faults as in rank 1 kill at operation 10; link 0-1 delay 20 ms, or @ and the path of "
             "a file of them",
             "Failures to inject, as a rehearsal; the same on all ranks.",
             parse_inject,
             [](const Config& c) {
               return c.faults_file.empty() ? to_text(c.faults) : "@" + c.faults_file;
             }},
    Variable{"PEAL_STAGE",
             "bytes from 4096 to 32M, as in 65536, 512K or 4M",
             "Shared memory in which a rank stages foreign buffers, for each group.",
             [](std::string_view text, Config& c) { c.stage = parse_stage(text); },
             [](const Config& c) { return fmt::format("{}", c.stage.value); }},
    Variable{
        kFlightDirVariable,
        "the path of a folder",
        "Where each rank keeps a record of its last operations, rank-N.flight, which survives "
        "the rank; `peal why` reads the records. Without it they are in memory; `peal run` sets it "
        "to a private folder.",
        [](std::string_view text, Config& c) { c.flight_dir = text; },
        [](const Config& c) { return c.flight_dir; }},
};

constexpr std::array kOtherVariables = {
    OtherVariable{"PEAL_JOB",
                  "The name of the job, the same on all its ranks; `peal run` sets it."},
    OtherVariable{
        "PEAL_ATTEMPT",
        "Which attempt of a job that may start again this is, from 0; `peal run` sets it."},
    OtherVariable{"PEAL_ROLE", "The role of a process of a submitted job; `peal submit` sets it."},
    OtherVariable{"PEAL_ROLE_RANK",
                  "The index among the processes of the role; `peal submit` sets it."},
    OtherVariable{"PEAL_NODE",
                  "Whether a rank of a submitted job is the only one on its node; `peal submit` "
                  "sets it."},
    OtherVariable{"PEAL_ELASTIC_DRIVER",
                  "Where the driver of an elastic job serves its workers; `peal run` sets it."},
    OtherVariable{"PEAL_ELASTIC_WORKER",
                  "The number of a worker of an elastic job; `peal run` sets it."},
    OtherVariable{
        "PEAL_LAUNCHED",
        "A mark that `peal run` sets for each rank. With this mark, a job that a rank "
        "starts ignores the PEAL_JOB, PEAL_FLIGHT_DIR, PEAL_INJECT and HOROVOD_RANK of the "
        "outer job."},
    OtherVariable{"PEAL_MASTER_PORT",
                  "The port where ranks meet. It takes precedence over MASTER_PORT, which torchrun "
                  "uses itself."},
    OtherVariable{"PEAL_BENCH_PYTHON",
                  "The Python whose torch `peal bench` uses for gloo, instead of python3."},
    OtherVariable{"PEAL_JOBS_DIR",
                  "The folder for the records of submitted jobs, instead of peal/jobs in "
                  "XDG_STATE_HOME or ~/.local/state."},
    OtherVariable{"PEAL_CONTAINER_ENGINE",
                  "The engine of containers, instead of podman or docker: its name or path."},
    OtherVariable{kStopFlagVariable,
                  "The path of the flag by which a launcher asks a rank to stop; `peal run` sets "
                  "it."},
    OtherVariable{"PEAL_TERMINAL_WIDTH",
                  "The columns for a line of a rank, on a terminal; `peal run` sets it."},
};

}  // namespace

std::string_view name_of(TransportChoice choice) {
  switch (choice) {
    case TransportChoice::kAuto:
      return "auto";
    case TransportChoice::kShm:
      return "shm";
    case TransportChoice::kTcp:
      return "tcp";
  }
  return "invalid";
}

LinkProtection link_protection_of(const Config& config) {
  if (config.tls == Tls::kOn) return LinkProtection::kEncrypted;
  return config.integrity == Integrity::kCrc ? LinkProtection::kChecked : LinkProtection::kPlain;
}

std::span<const Variable> variables() { return kVariables; }

std::span<const OtherVariable> other_variables() { return kOtherVariables; }

ConfigReading read_config(const Environment& environment) {
  ConfigReading reading;
  for (const Variable& variable : kVariables) {
    const auto text = environment(std::string(variable.name));
    if (!text) continue;
    try {
      variable.parse(*text, reading.config);
    } catch (const Error& error) {
      const std::string reason(error.message());
      const std::string value =
          variable.shown == Shown::kNever ? "" : fmt::format("=\"{}\"", *text);
      reading.wrong.push_back({variable.name,
                               fmt::format("{}{}: {}it takes {}",
                                           variable.name,
                                           value,
                                           reason.empty() ? "" : reason + "; ",
                                           variable.value)});
    }
  }
  return reading;
}

Config config_from(const Environment& environment) {
  ConfigReading reading = read_config(environment);
  if (reading.wrong.empty()) return std::move(reading.config);
  std::vector<std::string_view> problems;
  for (const WrongValue& wrong : reading.wrong) problems.emplace_back(wrong.problem);
  throw Error(ErrorKind::kUsage, fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace peal
