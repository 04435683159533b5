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
constexpr int kFewest = 3;
constexpr int kMost = 20'000;

/// One backend doing the case in one way.
struct Contestant {
  std::size_t fleet = 0;
  int slot = 0;
  std::string variant;
  Timing timing = {};
  std::vector<std::vector<double>> rounds = {};
};

class Contest final {
 public:
  Contest(Session& session, const Case& c, const MeasureOptions& options)
      : session_(session), case_(c), options_(options) {}

  Measured run() {
    for (std::size_t i = 0; i < session_.size(); ++i) enter(i);
    for (Contestant& contestant : contestants_) calibrate(contestant);
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        Contestant& next =
            contestants_[(i + static_cast<std::size_t>(round)) % contestants_.size()];
        if (auto samples = time(next, next.timing)) next.rounds.push_back(std::move(*samples));
      }
    }
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
    auto answers = session_.ask(fleet, command, Deadline::after(kPatience));
    if (!answers) {
      report(Incident::Kind::kLost,
             fleet,
             fmt::format("in {}: {}", describe(case_), session_.loss(fleet)));
    }
    return answers;
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
      report(Incident::Kind::kMissing, fleet, fmt::format("{}: {}", describe(case_), bad->text));
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
                  .warmup = 1,
                  .iterations = kFewest,
                  .batch = 1,
                  .rewriting = options_.rewriting};
    const bool batched = bytes_of(case_) <= kBatched;
    for (int pass = 0; pass < (batched ? 3 : 2); ++pass) {
      const TimePoint begin = Clock::now();
      const auto samples = time(contestant, timing);
      if (!samples) return;
      const double one = summarize(std::array{*samples}).median * operations(timing) / timing.batch;
      const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
      if (batched) timing.batch = std::clamp(static_cast<int>(kBatchMicroseconds / one), 1, 10'000);
      const double each = wall / (timing.warmup + timing.iterations);
      // The first pass includes what is done once; it must not fill the time of the second.
      const double share = pass == 0 ? 0.2 : 1;
      timing.iterations =
          std::clamp(static_cast<int>(share * options_.seconds / each), kFewest, kMost);
      timing.warmup = std::clamp(timing.iterations / 10, 1, 20);
    }
    contestant.timing = timing;
  }

  void collect() {
    for (const Contestant& contestant : contestants_) {
      if (contestant.rounds.empty() || !session_.loss(contestant.fleet).empty()) continue;
      measured_.results.push_back({.the_case = case_,
                                   .backend = backend(contestant.fleet),
                                   .transport = session_.fleet(contestant.fleet).transport,
                                   .variant = contestant.variant,
                                   .time = summarize(contestant.rounds)});
    }
    compare(measured_.results, options_.floors);
  }

  Session& session_;
  Case case_;
  const MeasureOptions& options_;
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
