#include "peal/bench/measure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace peal::bench {
namespace {

/// The check of a large case by an interpreter takes its time.
constexpr Timeout kPatience = std::chrono::seconds(120);
/// Up to here an operation is too short to be timed alone.
constexpr Bytes kBatched = 256_B;
constexpr double kBatchMicroseconds = 35;
constexpr int kLargestBatch = 10'000;
constexpr int kFewest = 2;
constexpr int kMost = 20'000;
constexpr int kMostWarmup = 20;
/// Operations in which bytes are counted.
constexpr int kCounted = 20;

/// One backend doing the case in one way.
struct Contestant {
  std::size_t fleet = 0;
  int slot = 0;
  std::string variant;
  Timing timing = {};
  std::vector<std::vector<double>> rounds = {};
  std::optional<Traffic> traffic = {};
};

class Contest final {
 public:
  Contest(Session& session, const Case& c, const MeasureOptions& options)
      : session_(session), case_(c), options_(options), told_(session.size()) {
    for (std::size_t i = 0; i < session.size(); ++i) told_[i] = !session.loss(i).empty();
  }

  Measured run() {
    for (std::size_t i = 0; i < session_.size(); ++i) {
      if (!options_.takes_part || options_.takes_part(backend(i), case_)) enter(i);
    }
    for (Contestant& contestant : contestants_) calibrate(contestant);
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        Contestant& next =
            contestants_[(i + static_cast<std::size_t>(round)) % contestants_.size()];
        if (auto samples = time(next, next.timing)) next.rounds.push_back(std::move(*samples));
      }
    }
    if (options_.traffic) std::ranges::for_each(contestants_, [&](auto& c) { count_traffic(c); });
    for (std::size_t i = 0; i < session_.size(); ++i) tell_loss(i);
    collect();
    return std::move(measured_);
  }

 private:
  const std::string& backend(std::size_t fleet) const { return session_.fleet(fleet).backend; }

  void report(Incident::Kind kind, std::size_t fleet, const std::string& text) {
    measured_.incidents.push_back({kind, backend(fleet), text});
  }

  std::optional<std::vector<Answer>> ask(std::size_t fleet, const Command& command) {
    if (!session_.loss(fleet).empty()) return std::nullopt;
    return session_.ask(fleet, command, Deadline::after(kPatience));
  }

  /// A fleet may be lost while it was not its turn, too.
  void tell_loss(std::size_t fleet) {
    if (told_[fleet] || session_.loss(fleet).empty()) return;
    report(Incident::Kind::kLost,
           fleet,
           fmt::format("in {}: {}", describe(case_), session_.loss(fleet)));
  }

  /// Has the fleet prepare each of its variants; those that do it right take part.
  void enter(std::size_t fleet) {
    int slot = 0;
    for (const std::string& variant : session_.fleet(fleet).variants) {
      const auto answers = ask(fleet, Prepare{slot, case_, variant});
      if (!answers) return;
      if (is_right(fleet, variant, *answers)) {
        contestants_.push_back({.fleet = fleet, .slot = slot, .variant = variant});
      }
      ++slot;
    }
  }

  bool is_right(std::size_t fleet, const std::string& variant, const std::vector<Answer>& answers) {
    const auto bad = std::ranges::find_if(
        answers, [](const Answer& answer) { return answer.kind != Answer::Kind::kOk; });
    if (bad == answers.end()) return true;
    if (bad->kind == Answer::Kind::kMissing) {
      if (std::ranges::count(options_.floors, backend(fleet)) > 0) return false;
      report(Incident::Kind::kMissing,
             fleet,
             fmt::format("no {} of {}: {}", name_of(case_.op), name_of(case_.dtype), bad->text));
      return false;
    }
    const bool is_wrong = bad->kind == Answer::Kind::kWrong;
    report(Incident::Kind::kWrong,
           fleet,
           fmt::format("{} {}, {} memory, rank {}: {}",
                       is_wrong ? "wrong result of" : "failed:",
                       describe(case_),
                       variant,
                       bad - answers.begin(),
                       bad->text));
    return false;
  }

  /// How many operations one sample stands for: a ping-pong is two messages.
  double operations(const Timing& timing) const {
    return timing.batch * (case_.op == Op::kSendRecv ? 2.0 : 1.0);
  }

  std::optional<std::vector<double>> time(const Contestant& contestant, const Timing& timing) {
    const auto answers = ask(contestant.fleet, timing);
    if (!answers) return std::nullopt;
    std::vector<std::vector<Interval>> times;
    for (const Answer& answer : *answers) {
      if (answer.kind == Answer::Kind::kOk && !answer.times.empty()) {
        times.push_back(answer.times);
        continue;
      }
      report(Incident::Kind::kWrong,
             contestant.fleet,
             fmt::format("failed: {}: {}", describe(case_), answer.text));
      return std::nullopt;
    }
    return samples_of(times, operations(timing));
  }

  /// Finds how many operations make a batch, and how many batches fit the time of a round, the
  /// rewriting included.
  void calibrate(Contestant& contestant) {
    Timing timing{.slot = contestant.slot,
                  .warmup = 0,
                  .iterations = 1,
                  .batch = 1,
                  .rewriting = options_.rewriting};
    for (const double share : {0.1, 0.2, 1.0}) {
      const TimePoint begin = Clock::now();
      const auto samples = time(contestant, timing);
      if (!samples) return;
      const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
      const double each = wall / (timing.warmup + timing.iterations);
      const bool is_slow = kFewest * each > options_.seconds;
      timing = fit(timing, summarize(std::array{*samples}).median, share * options_.seconds / each);
      if (is_slow) break;
    }
    contestant.timing = timing;
  }

  /// The timing that has room for so many iterations, where an operation takes `one` microseconds.
  Timing fit(Timing timing, double one, double room) const {
    if (bytes_of(case_) <= kBatched) {
      const double factor = timing.batch / operations(timing);
      const int batch = static_cast<int>(kBatchMicroseconds * factor / std::max(one, 0.001));
      timing.batch = std::clamp(batch, 1, kLargestBatch);
    }
    timing.iterations = std::clamp(static_cast<int>(room), kFewest, kMost);
    timing.warmup = std::clamp(timing.iterations / 10, 1, kMostWarmup);
    return timing;
  }

  /// Counts what some more operations send.
  void count_traffic(Contestant& contestant) {
    Timing timing = contestant.timing;
    timing.warmup = 0;
    timing.iterations = std::min(timing.iterations, kCounted);
    const std::vector<Traffic> before = options_.traffic();
    if (!time(contestant, timing)) return;
    const std::vector<Traffic> after = options_.traffic();
    const auto operations = std::int64_t{timing.batch} * timing.iterations;
    Traffic most;
    for (std::size_t host = 0; host < after.size(); ++host) {
      const std::int64_t sent = after[host].interface_bytes - before[host].interface_bytes;
      most.interface_bytes = std::max(most.interface_bytes, sent / operations);
      if (!after[host].qdisc_bytes) continue;
      const std::int64_t queued = *after[host].qdisc_bytes - *before[host].qdisc_bytes;
      most.qdisc_bytes = std::max(most.qdisc_bytes.value_or(0), queued / operations);
    }
    contestant.traffic = most;
  }

  void collect() {
    for (const Contestant& contestant : contestants_) {
      if (contestant.rounds.empty() || !session_.loss(contestant.fleet).empty()) continue;
      measured_.results.push_back({.the_case = case_,
                                   .backend = backend(contestant.fleet),
                                   .transport = session_.fleet(contestant.fleet).transport,
                                   .variant = contestant.variant,
                                   .hosts = options_.hosts,
                                   .time = summarize(contestant.rounds),
                                   .note = session_.note(contestant.fleet),
                                   .traffic = contestant.traffic});
    }
    compare(measured_.results, options_.floors);
  }

  Session& session_;
  Case case_;
  const MeasureOptions& options_;
  std::vector<bool> told_;  // by fleet: its loss
  std::vector<Contestant> contestants_;
  Measured measured_;
};

}  // namespace

Measured measure(Session& session, const Case& c, const MeasureOptions& options) {
  return Contest(session, c, options).run();
}

std::string describe(const Incident& incident) {
  return fmt::format("{} {}", incident.backend + ":", incident.text);
}

}  // namespace peal::bench
