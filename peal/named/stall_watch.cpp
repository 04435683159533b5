#include "peal/named/stall_watch.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/base/guarded.h"
#include "peal/named/stall_messages.h"
#include "peal/named/unlimited.h"
#include "peal/system/thread.h"

namespace peal::named {
namespace {

constexpr Tag kQuestion(2);
constexpr Tag kAnswer(3);
constexpr Tag kPlace(4);
constexpr Timeout kLeavesWithin = std::chrono::seconds(1);
/// After this many looks without an answer, a rank may count as stopped. One look is not enough:
/// all processes of the job may have been stopped during this look, and continue now.
constexpr int kSilentLooks = 3;

}  // namespace

/// Used by callbacks of messages, which may run after the StallWatch has ended.
struct StallWatch::Shared : std::enable_shared_from_this<StallWatch::Shared> {
  /// A question that another rank may send.
  struct Incoming {
    StallMessage message = StallMessage(kStallMessageSize);
    WorkPtr work;
  };
  /// To a rank: the last question, its answer, and the place of its program.
  struct Asked {
    std::uint64_t number = 0;
    StallMessage question;
    StallMessage answer = StallMessage(kStallMessageSize);
    StallMessage place = StallMessage(kStallMessageSize);
    WorkPtr sent, answer_received, place_received;
    TimePoint at{};
    int silent_looks = 0;  // that have ended without an answer to the last question
  };
  struct State {
    bool closed = false;
    std::thread thread;
    std::map<Rank, std::uint64_t> places_to_tell;  // the last question of each rank
  };

  explicit Shared(Parts given)
      : parts(std::move(given)), asked(static_cast<std::size_t>(parts.group->size())) {}

  // ---- answers: on the thread of callbacks
  void receive_question();
  void answer(const StallMessage& message, Rank to);
  // ---- questions, and places of this rank's program: on the thread of the watch
  void start_thread();
  void watch();
  void tell_places();
  void look();
  StandingsOfRanks ask(const Stalled& stalled);
  void send_question(Rank rank, const StallQuestion& question);
  bool is_answered(Rank rank, const StallQuestion& question, std::optional<Standing>& standing);
  void end_with_stopped_ranks();
  bool is_closed() {
    return state.with([](const State& now) { return now.closed; });
  }

  Parts parts;
  std::vector<Asked> asked;  // by rank
  std::uint64_t questions = 0;
  TimePoint next_report{};
  Guarded<State> state;
};

void StallWatch::Shared::receive_question() {
  auto incoming = std::make_shared<Incoming>();
  incoming->work =
      parts.group->irecv(incoming->message, kAnySource, {.tag = kQuestion, .timeout = kUnlimited});
  incoming->work->when_completed([self = weak_from_this(), incoming] {
    const WorkPtr work = std::exchange(incoming->work, nullptr);
    if (work->exception()) return;
    if (const auto shared = self.lock()) shared->answer(incoming->message, work->source());
  });
}

void StallWatch::Shared::answer(const StallMessage& message, Rank to) {
  try {
    const StallQuestion question = question_in(message);
    state.update([&](State& now) {
      if (now.closed) return;
      auto reply = std::make_shared<StallMessage>(
          message_of(StallAnswer{question.number, parts.standing(question.names)}));
      const WorkPtr sent = parts.group->isend(*reply, to, {.tag = kAnswer, .timeout = kUnlimited});
      sent->when_completed([reply] {});  // keeps the memory
      now.places_to_tell[to] = question.number;
    });
    // Without the lock: if the next question has already arrived, its answer takes the lock.
    receive_question();
    start_thread();
  } catch (...) {
    // Either the group has ended, and no rank asks any more. Or this rank lacks memory or threads:
    // then the other rank reports that this rank does not answer.
  }
}

void StallWatch::Shared::start_thread() {
  state.with([this](State& now) {
    if (now.closed || now.thread.joinable()) return;
    now.thread = peal::start_thread([this] { watch(); });
  });
}

void StallWatch::Shared::watch() {
  const Duration period = std::max<Duration>(parts.warning / 10, std::chrono::milliseconds(10));
  TimePoint next_look = Clock::now() + period;
  const auto has_work = [](const State& now) { return now.closed || !now.places_to_tell.empty(); };
  try {
    while (true) {
      state.wait(Deadline(next_look), has_work, [](State&) {});
      if (is_closed()) return;
      tell_places();
      if (Clock::now() < next_look) continue;
      look();
      next_look = Clock::now() + period;
    }
  } catch (...) {
    // Either the group has ended, and its callers have the error. Or functions of the program have
    // thrown.
  }
}

void StallWatch::Shared::tell_places() {
  const auto to_tell = state.with([](State& now) { return std::exchange(now.places_to_tell, {}); });
  if (to_tell.empty()) return;
  std::string text;
  try {
    if (parts.whereabouts) text = parts.whereabouts();
  } catch (...) {
    // The other rank reports without the place.
  }
  for (const auto& [rank, number] : to_tell) {
    auto message = std::make_shared<StallMessage>(message_of(StallPlace{number, text}));
    const WorkPtr sent = parts.group->isend(*message, rank, {.tag = kPlace, .timeout = kUnlimited});
    sent->when_completed([message] {});  // keeps the memory
  }
}

void StallWatch::Shared::look() {
  Stalled stalled = parts.stalled();
  if (stalled.names.empty()) return;
  const bool is_over = parts.shutdown.count() > 0 && stalled.waited > parts.shutdown;
  if (!is_over && Clock::now() < next_report) return;
  if (stalled.names.size() > kMostNamesOfQuestion) stalled.names.resize(kMostNamesOfQuestion);
  for (std::string& name : stalled.names) name = name.substr(0, kLongestNameOfQuestion);
  const StandingsOfRanks ranks = ask(stalled);
  if (is_closed()) return;
  if (const std::string end = is_over ? stall_end(stalled, ranks, parts.shutdown) : "";
      !end.empty()) {
    parts.abort(end);
    return;
  }
  if (Clock::now() < next_report) return;
  next_report = Clock::now() + parts.warning;
  const std::string text = stall_report(stalled, ranks, parts.warning);
  try {
    if (!text.empty()) parts.report(text);
  } catch (...) {
    // An error of a report must not end the watch.
  }
}

void StallWatch::Shared::send_question(Rank rank, const StallQuestion& question) {
  Asked& to = asked[static_cast<std::size_t>(rank)];
  to.question = message_of(question);
  to.number = question.number;
  to.at = Clock::now();
  ProcessGroup& group = *parts.group;
  if (!to.place_received) {
    to.place_received = group.irecv(to.place, rank, {.tag = kPlace, .timeout = kUnlimited});
  }
  to.answer_received = group.irecv(to.answer, rank, {.tag = kAnswer, .timeout = kUnlimited});
  to.sent = group.isend(to.question, rank, {.tag = kQuestion, .timeout = kUnlimited});
}

/// Whether the rank has sent all answers. Sends the question when the rank has answered the
/// previous question.
bool StallWatch::Shared::is_answered(Rank rank,
                                     const StallQuestion& question,
                                     std::optional<Standing>& standing) {
  Asked& to = asked[static_cast<std::size_t>(rank)];
  if (!to.answer_received && to.number != question.number) send_question(rank, question);
  if (to.answer_received && to.answer_received->is_completed()) {
    to.answer_received->wait();
    to.answer_received = nullptr;
    to.silent_looks = 0;
    const StallAnswer answer = answer_in(to.answer);
    if (answer.number == question.number) {
      standing = answer.standing;
    } else {
      send_question(rank, question);
    }
  }
  if (to.place_received && to.place_received->is_completed()) {
    to.place_received->wait();
    const StallPlace place = place_in(to.place);
    to.place_received = parts.group->irecv(to.place, rank, {.tag = kPlace, .timeout = kUnlimited});
    if (standing && place.number == question.number) standing->place = place.text;
  }
  return standing && (standing->place || missing_names({question.names, {}}, *standing).empty());
}

/// Waits up to `answers_within` for the answers. Meanwhile other ranks may ask this rank.
StandingsOfRanks StallWatch::Shared::ask(const Stalled& stalled) {
  ProcessGroup& group = *parts.group;
  const StallQuestion question{++questions, stalled.names};
  StandingsOfRanks ranks;
  ranks.self = group.rank();
  ranks.standings.resize(static_cast<std::size_t>(group.size()));
  for (Rank rank = 0; rank < group.size(); ++rank) {
    ranks.global_ranks.push_back(group.global_rank(rank));
  }
  ranks.answers_within = parts.answers_within;
  const Deadline deadline = Deadline::after(parts.answers_within);
  while (true) {
    bool is_complete = true;
    for (Rank rank = 0; rank < group.size(); ++rank) {
      if (rank == group.rank()) continue;
      auto& standing = ranks.standings[static_cast<std::size_t>(rank)];
      is_complete = is_answered(rank, question, standing) && is_complete;
    }
    if (is_complete || deadline.passed() || is_closed()) break;
    tell_places();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  end_with_stopped_ranks();
  return ranks;
}

void StallWatch::Shared::end_with_stopped_ranks() {
  const Timeout limit = parts.group->timeout();
  for (Rank rank = 0; rank < parts.group->size(); ++rank) {
    Asked& to = asked[static_cast<std::size_t>(rank)];
    if (!to.answer_received || ++to.silent_looks < kSilentLooks) continue;
    if (Clock::now() - to.at <= limit) continue;
    parts.abort(fmt::format("rank {} has not answered for {:g} seconds; its process is stopped",
                            parts.group->global_rank(rank),
                            std::chrono::duration<double>(limit).count()));
  }
}

StallWatch::StallWatch(Parts parts) : shared_(std::make_shared<Shared>(std::move(parts))) {
  if (const auto notes = shared_->parts.group->flight_notes()) notes->group_is_background();
  shared_->receive_question();
}

StallWatch::~StallWatch() {
  std::thread thread = shared_->state.update([](Shared::State& state) {
    state.closed = true;
    return std::move(state.thread);
  });
  if (thread.joinable()) thread.join();
  try {
    shared_->parts.group->destroy(kLeavesWithin);
  } catch (...) {
    // This rank ignores further questions of other ranks.
  }
}

void StallWatch::start() { shared_->start_thread(); }

}  // namespace peal::named
