#include "peal/bench/worker.h"

#include <time.h>

#include <array>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/bench/flags.h"
#include "peal/bench/peal_subject.h"
#include "peal/bench/probe_subject.h"
#include "peal/bench/protocol.h"
#include "peal/bench/stream_subject.h"
#include "peal/bench/subject.h"
#include "peal/bench/values.h"
#include "peal/net/socket.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"

namespace peal::bench {
namespace {

constexpr Timeout kLimit = std::chrono::seconds(60);

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The connection to the coordinator: lines from it and answers to it.
class Line final {
 public:
  explicit Line(const std::string& socket)
      : fd_(net::connect_to(net::Address::parse("unix:" + socket), Deadline::after(kLimit))) {}

  void say(std::string_view text) {
    net::write_all(fd_.get(), std::as_bytes(std::span(text)), Deadline::after(kLimit));
  }
  /// The next line; nullopt when the coordinator has closed the connection. An idle worker waits
  /// here, without a deadline and without using a CPU.
  std::optional<std::string> next() {
    while (true) {
      if (const auto end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      pollfd entry{fd_.get(), POLLIN, 0};
      net::poll_until({&entry, 1}, Deadline(TimePoint::max()));
      std::array<std::byte, 4096> bytes;
      const net::Moved moved = net::try_read(fd_.get(), bytes);
      if (moved.closed) return std::nullopt;
      read_.append(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::size_t>(moved.bytes.value));
    }
  }

 private:
  Fd fd_;
  std::string read_;
};

class Worker final {
 public:
  Worker(Subject& subject, Flags flags, Rank rank)
      : subject_(subject), flags_(flags), rank_(rank) {}

  Answer follow(const Command& command) {
    return std::visit([this](const auto& c) { return follow(c); }, command);
  }

 private:
  Answer follow(const Prepare& command) {
    const Case& asked = command.the_case;
    if (command.slot == 0) trials_.clear();
    if (!subject_.can(asked, command.variant)) {
      return {.kind = Answer::Kind::kMissing, .text = describe(asked), .times = {}};
    }
    auto trial = subject_.prepare(asked, command.variant);
    Case checked = asked;
    checked.dtype = subject_.checked_as(asked.dtype);
    std::ranges::fill(trial->output(), std::byte{0});
    fill_input(trial->input(), checked, rank_);
    flags_.meet();
    trial->run();
    const auto wrong = find_wrong(trial->output(), checked, rank_);
    dtypes_[command.slot] = checked.dtype;
    trials_[command.slot] = std::move(trial);
    if (wrong) return {.kind = Answer::Kind::kWrong, .text = *wrong, .times = {}};
    return {};
  }

  Answer follow(const Timing& command) {
    Trial& trial = *trials_.at(command.slot);
    const DType dtype = dtypes_.at(command.slot);
    const bool rewrites = command.rewriting == Rewriting::kInputs;
    const bool rewrites_inside = rewrites && command.batch > 1;
    Answer answer;
    answer.times.reserve(static_cast<std::size_t>(command.iterations));
    for (int i = -command.warmup; i < command.iterations; ++i) {
      if (rewrites && !rewrites_inside) rewrite(trial.input(), dtype);
      flags_.meet();
      const std::int64_t begin = now();
      for (int k = 0; k < command.batch; ++k) {
        if (rewrites_inside) rewrite(trial.input(), dtype);
        trial.run();
      }
      const std::int64_t end = now();
      if (i >= 0) answer.times.push_back({begin, end});
    }
    return answer;
  }

  Subject& subject_;
  Flags flags_;
  Rank rank_;
  std::map<int, std::unique_ptr<Trial>> trials_;
  std::map<int, DType> dtypes_;
};

int parse_number(const std::string& text) {
  if (const auto number = try_parse_number<int>(text)) return *number;
  throw Error(ErrorKind::kUsage, fmt::format("{}: \"{}\" is not a number", kWorkerCommand, text));
}

struct Arguments {
  std::string kind, backend, socket, flags;
  Waiting waiting = Waiting::kSpin;
  Rank rank = 0;
  int ranks = 1;
  std::string more;
};

Arguments parse(const std::vector<std::string>& words) {
  if (words.size() < 7) {
    throw Error(ErrorKind::kUsage, fmt::format("only `peal bench` may call {}", kWorkerCommand));
  }
  return {.kind = words[0],
          .backend = words[1],
          .socket = words[2],
          .flags = words[3],
          .waiting = words[4] == "yield" ? Waiting::kYield : Waiting::kSpin,
          .rank = parse_number(words[5]),
          .ranks = parse_number(words[6]),
          .more = words.size() > 7 ? words[7] : ""};
}

std::unique_ptr<Subject> make_subject(const Arguments& arguments) {
  if (arguments.kind == "peal") return make_peal_subject(arguments.more);
  if (arguments.kind == "probe") {
    return make_probe_subject(arguments.more, arguments.rank, arguments.ranks, arguments.waiting);
  }
  if (arguments.kind == "stream") {
    return make_stream_subject(arguments.more, arguments.rank, arguments.waiting);
  }
  throw Error(ErrorKind::kUsage, fmt::format("unknown kind of worker \"{}\"", arguments.kind));
}

}  // namespace

int work(const std::vector<std::string>& words) {
  const Arguments arguments = parse(words);
  Line line(arguments.socket);
  const Bytes size = Bytes(Flags::kLine) * arguments.ranks;
  const auto page = Mapping::of_file(open_shared_file(arguments.flags, size).get(), size);
  const auto subject = make_subject(arguments);
  line.say(encode(Hello{arguments.backend, arguments.rank, subject->note()}));
  Worker worker(
      *subject,
      Flags(page.bytes().data(), arguments.rank, arguments.ranks, arguments.waiting, Rest::kSleep),
      arguments.rank);
  while (const auto command = line.next()) {
    Answer answer;
    try {
      answer = worker.follow(parse_command(*command));
    } catch (const std::exception& error) {
      answer = {.kind = Answer::Kind::kFailed, .text = error.what(), .times = {}};
    }
    line.say(encode(answer));
  }
  return 0;
}

}  // namespace peal::bench
