#include "peal/bench/measure.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "peal/bench/calibrate.h"

namespace peal::bench {
namespace {

/// The number of operations for which bytes are counted.
constexpr int kCounted = 20;

/// One backend in one variant.
struct Contestant {
  std::size_t fleet = 0;
  int slot = 0;
  std::string variant;
  Timing timing = {};
  double tried = 0;  // the median of the trials
  std::vector<std::vector<double>> rounds = {};
  std::optional<Traffic> traffic = {};
  enum class State : unsigned char {
    kIn,
    kBehind,  // gets no further rounds
    kOut,     // has failed
  } state = State::kIn;
};

class Contest final {
 public:
  Contest(Session& session, const Case& c, const MeasureOptions& options)
      : session_(session), case_(c), options_(options), known_losses_(session.size()) {
    for (std::size_t i = 0; i < session.size(); ++i) known_losses_[i] = !session.loss(i).empty();
  }

  std::vector<Result> run() {
    for (std::size_t i = 0; i < session_.size(); ++i) {
      if (!options_.takes_part || options_.takes_part(backend(i), case_)) enter(i);
    }
    for (Contestant& contestant : contestants_) calibrate(contestant);
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        Contestant& next =
            contestants_[(i + static_cast<std::size_t>(round)) % contestants_.size()];
        if (next.state != Contestant::State::kIn) continue;
        if (auto samples = time(next, next.timing)) next.rounds.push_back(std::move(*samples));
      }
      if (round == 0 && options_.far_behind > 0) leave_behind();
    }
    if (options_.traffic) std::ranges::for_each(contestants_, [&](auto& c) { count_traffic(c); });
    collect();
    return std::move(results_);
  }

 private:
  const std::string& backend(std::size_t fleet) const { return session_.fleet(fleet).backend; }

  void report(Incident::Kind kind, std::size_t fleet, const std::string& text) {
    options_.incident({kind, backend(fleet), text});
  }

  std::optional<std::vector<Answer>> ask(std::size_t fleet, const Command& command) {
    if (!session_.loss(fleet).empty()) return std::nullopt;
    auto answers = session_.ask(fleet, command, Deadline::after(time_limit_for(options_.seconds)));
    report_losses();
    return answers;
  }

  /// While the session waits for one fleet, it notices the loss of any fleet.
  void report_losses() {
    for (std::size_t i = 0; i < session_.size(); ++i) {
      if (known_losses_[i] || session_.loss(i).empty()) continue;
      known_losses_[i] = true;
      report(Incident::Kind::kLost, i, fmt::format("in {}: {}", describe(case_), session_.loss(i)));
    }
  }

  /// Lets the fleet prepare each of its variants; variants with the right result take part.
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
             fmt::format(
                 "cannot do {} of {}: {}", name_of(case_.op), name_of(case_.dtype), bad->text));
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

  /// A contestant that fails once is out, because all need the same number of rounds.
  std::optional<std::vector<double>> time(Contestant& contestant, const Timing& timing) {
    auto samples = try_time(contestant, timing);
    if (!samples) contestant.state = Contestant::State::kOut;
    return samples;
  }

  std::optional<std::vector<double>> try_time(const Contestant& contestant, const Timing& timing) {
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
    return samples_of(times, timing.batch * operations_in(case_));
  }

  /// Stops contestants that are far behind another one with the same memory, both in the trials and
  /// in the first round.
  void leave_behind() {
    const auto times = [](const Contestant& c) {
      return std::array{c.tried, summarize(c.rounds).median};
    };
    for (Contestant& contestant : contestants_) {
      if (contestant.state != Contestant::State::kIn) continue;
      const bool is_behind = std::ranges::any_of(contestants_, [&](const Contestant& other) {
        return other.state == Contestant::State::kIn && other.variant == contestant.variant &&
               is_far_behind(times(contestant), times(other), options_.far_behind);
      });
      if (is_behind) contestant.state = Contestant::State::kBehind;
    }
  }

  void calibrate(Contestant& contestant) {
    const Timing first{.slot = contestant.slot, .rewriting = options_.rewriting};
    const auto attempt = [&](const Timing& timing) -> std::optional<Tried> {
      const TimePoint begin = Clock::now();
      const auto samples = time(contestant, timing);
      if (!samples) return std::nullopt;
      const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
      contestant.tried = summarize(std::array{*samples}).median;
      return Tried{wall, contestant.tried};
    };
    const auto timing = bench::calibrate(case_, first, options_.seconds, attempt);
    if (timing) contestant.timing = *timing;  // else it takes no further part
  }

  /// Counts the bytes that some more operations send.
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

  std::string algorithm_of(const Contestant& contestant) const {
    return options_.algorithm ? options_.algorithm(backend(contestant.fleet), case_) : "";
  }

  void collect() {
    for (const Contestant& contestant : contestants_) {
      const bool is_out = contestant.state == Contestant::State::kOut;
      if (is_out || !session_.loss(contestant.fleet).empty()) continue;
      results_.push_back({.the_case = case_,
                          .backend = backend(contestant.fleet),
                          .transport = session_.fleet(contestant.fleet).transport,
                          .variant = contestant.variant,
                          .hosts = options_.hosts,
                          .conditions = options_.conditions,
                          .algorithm = algorithm_of(contestant),
                          .time = summarize(contestant.rounds),
                          .note = session_.note(contestant.fleet),
                          .traffic = contestant.traffic});
    }
    compare(results_, options_.floors);
  }

  Session& session_;
  Case case_;
  const MeasureOptions& options_;
  std::vector<bool> known_losses_;  // by fleet
  std::vector<Contestant> contestants_;
  std::vector<Result> results_;
};

}  // namespace

std::vector<Result> measure(Session& session, const Case& c, const MeasureOptions& options) {
  return Contest(session, c, options).run();
}

double expected_seconds(const Session& session, const Case& c, const MeasureOptions& options) {
  constexpr double kPreparing = 0.5;  // of a round: checking the result, and trials
  std::size_t ways = 0;
  for (std::size_t i = 0; i < session.size(); ++i) {
    const std::string& backend = session.fleet(i).backend;
    const bool takes_part = !options.takes_part || options.takes_part(backend, c);
    if (takes_part && session.loss(i).empty()) ways += session.fleet(i).variants.size();
  }
  return static_cast<double>(ways) * options.seconds * (options.rounds + kPreparing);
}

std::string describe(const Incident& incident) {
  return fmt::format("{} {}", incident.backend + ":", incident.text);
}

}  // namespace peal::bench
