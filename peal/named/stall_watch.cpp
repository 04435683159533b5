#include "peal/named/stall_watch.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/named/request.h"
#include "peal/named/unlimited.h"
#include "peal/system/thread.h"

namespace peal::named {
namespace {

constexpr Tag kQuestion(2);
constexpr Tag kAnswer(3);
constexpr Timeout kAnswersWithin = std::chrono::seconds(3);

/// Messages have this size: the receiver must know it.
constexpr std::size_t kSize = 8192;
constexpr std::size_t kMostNames = 16;  // in a question
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestPlace = 6000;
constexpr std::size_t kShownNames = 5;

using Message = std::vector<std::uint8_t>;  // of kSize bytes

Message message_of(ByteWriter text) {
  const std::string bytes = std::move(text).take();
  Message message(kSize);
  std::ranges::copy(bytes, message.begin());
  return message;
}

ByteReader reader_of(const Message& message) {
  return {std::string_view(reinterpret_cast<const char*>(message.data()), message.size()),
          "question about pending operations"};
}

Message question_of(const std::vector<std::string>& names) {
  ByteWriter out;
  out.put_u32(static_cast<std::uint32_t>(names.size()));
  for (const std::string& name : names) out.put_text(name);
  return message_of(std::move(out));
}

std::vector<std::string> names_of(const Message& message) {
  ByteReader in = reader_of(message);
  const std::size_t count = std::min<std::size_t>(in.get_u32(), kMostNames);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.emplace_back(in.get_text(Bytes(static_cast<std::int64_t>(kLongestName))));
  }
  return names;
}

Message answer_of(const Standing& standing) {
  ByteWriter out;
  out.put_u64(standing.has).put_text(standing.place.substr(0, kLongestPlace));
  return message_of(std::move(out));
}

Standing standing_of(const Message& message) {
  ByteReader in = reader_of(message);
  Standing standing;
  standing.has = in.get_u64();
  standing.place = in.get_text(Bytes(static_cast<std::int64_t>(kLongestPlace)));
  return standing;
}

bool has(const Standing& standing, std::size_t name) { return (standing.has >> name & 1) != 0; }

std::string shortened(const std::vector<std::string>& names) {
  if (names.size() <= kShownNames) return fmt::format("[{}]", fmt::join(names, ", "));
  return fmt::format(
      "[{}, ...]",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(kShownNames), ", "));
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

}  // namespace

std::string stall_report(const Stalled& stalled,
                         const std::vector<std::optional<Standing>>& standings,
                         Rank self,
                         const std::vector<Rank>& global_ranks,
                         Timeout warning) {
  std::string missing;
  for (std::size_t rank = 0; rank < standings.size(); ++rank) {
    if (static_cast<Rank>(rank) == self) continue;
    const std::optional<Standing>& standing = standings[rank];
    if (!standing) {
      missing += fmt::format("\n{}: does not answer; its process may be stopped or busy",
                             global_ranks[rank]);
      continue;
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < stalled.names.size(); ++i) {
      if (!has(*standing, i)) names.push_back(stalled.names[i]);
    }
    if (standing->has != 0 && static_cast<Rank>(rank) < self) return {};  // that rank reports
    if (names.empty()) continue;
    missing += fmt::format("\n{}: {}", global_ranks[rank], shortened(names));
    if (!standing->place.empty()) missing += "\n" + indented(standing->place);
  }
  if (missing.empty()) return {};
  return fmt::format(
      "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
      "ranks and are waiting for remainder of ranks for more than {} seconds. Rank {} has waited "
      "for {} seconds. Either ranks submit different tensors, or a rank does something else.\n"
      "Missing ranks:{}",
      std::chrono::duration_cast<std::chrono::seconds>(warning).count(),
      global_ranks[static_cast<std::size_t>(self)],
      std::chrono::duration_cast<std::chrono::seconds>(stalled.waited).count(),
      missing);
}

/// Used by callbacks of messages, which may run after the StallWatch has ended.
struct StallWatch::Shared : std::enable_shared_from_this<StallWatch::Shared> {
  /// A question that another rank may send.
  struct Question {
    Message message = Message(kSize);
    WorkPtr work;
  };
  /// To a rank, from the question to its answer.
  struct Asked {
    Message question;
    Message answer = Message(kSize);
    WorkPtr sent, received;
    TimePoint at{};
  };
  struct State {
    bool closed = false;
    std::thread thread;
  };

  explicit Shared(Parts given)
      : parts(std::move(given)), asked(static_cast<std::size_t>(parts.group->size())) {}

  void receive_question() {
    auto question = std::make_shared<Question>();
    question->work = parts.group->irecv(
        question->message, kAnySource, {.tag = kQuestion, .timeout = kUnlimited});
    question->work->when_completed([self = weak_from_this(), question] {
      const WorkPtr work = std::exchange(question->work, nullptr);
      if (work->exception()) return;
      if (const auto shared = self.lock()) shared->answer(question->message, work->source());
    });
  }

  void answer(const Message& question, Rank to) {
    try {
      state.with([&](const State& now) {
        if (now.closed) return;
        auto message = std::make_shared<Message>(answer_of(parts.standing(names_of(question))));
        const WorkPtr sent =
            parts.group->isend(*message, to, {.tag = kAnswer, .timeout = kUnlimited});
        sent->when_completed([message] {});  // keeps the memory
      });
      // Outside of the lock: if the next question has come already, its answer takes the lock.
      receive_question();
    } catch (const Error&) {
      // The group has ended: no rank asks any more.
    }
  }

  Parts parts;
  std::vector<Asked> asked;  // by rank; used by the thread that asks
  TimePoint next_report{};
  Guarded<State> state;
};

StallWatch::StallWatch(Parts parts) : shared_(std::make_shared<Shared>(std::move(parts))) {
  shared_->receive_question();
}

StallWatch::~StallWatch() {
  std::thread thread = shared_->state.update([](Shared::State& state) {
    state.closed = true;
    return std::move(state.thread);
  });
  if (thread.joinable()) thread.join();
  try {
    shared_->parts.group->destroy();
  } catch (const Error&) {
    // The questions of other ranks are of no interest any more.
  }
}

void StallWatch::start() {
  shared_->state.with([this](Shared::State& state) {
    if (state.closed || state.thread.joinable()) return;
    state.thread = start_thread([this] { watch(); });
  });
}

void StallWatch::watch() {
  const Duration period =
      std::max<Duration>(shared_->parts.warning / 10, std::chrono::milliseconds(10));
  const auto is_closed = [](const Shared::State& state) { return state.closed; };
  while (!shared_->state.wait(Deadline(Clock::now() + period), is_closed, [](auto&) {})) {
    try {
      look();
    } catch (const Error&) {
      return;  // the group has ended, and all of its callers know why
    }
  }
}

void StallWatch::look() {
  const Parts& parts = shared_->parts;
  Stalled stalled = parts.stalled();
  if (stalled.names.empty()) return;
  if (parts.shutdown.count() > 0 && stalled.waited > parts.shutdown) {
    parts.abort(fmt::format(
        "{} has waited for other ranks for more than {} seconds, the limit of the stall check",
        stalled.names.front(),
        std::chrono::duration_cast<std::chrono::seconds>(parts.shutdown).count()));
    return;
  }
  if (Clock::now() < shared_->next_report) return;
  shared_->next_report = Clock::now() + parts.warning;
  if (stalled.names.size() > kMostNames) stalled.names.resize(kMostNames);
  for (std::string& name : stalled.names) name = name.substr(0, kLongestName);
  const std::vector<std::optional<Standing>> standings = ask(stalled.names);
  std::vector<Rank> global_ranks;
  for (Rank rank = 0; rank < parts.group->size(); ++rank) {
    global_ranks.push_back(parts.group->global_rank(rank));
  }
  const std::string text =
      stall_report(stalled, standings, parts.group->rank(), global_ranks, parts.warning);
  if (!text.empty()) parts.report(text);
}

/// Asks all ranks that have answered earlier questions. Waits for the answers for a while.
std::vector<std::optional<Standing>> StallWatch::ask(const std::vector<std::string>& names) {
  ProcessGroup& group = *shared_->parts.group;
  const Message question = question_of(names);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    Shared::Asked& asked = shared_->asked[static_cast<std::size_t>(rank)];
    if (rank == group.rank() || (asked.received && !asked.received->is_completed())) continue;
    asked.question = question;
    asked.at = Clock::now();
    asked.received = group.irecv(asked.answer, rank, {.tag = kAnswer, .timeout = kUnlimited});
    asked.sent = group.isend(asked.question, rank, {.tag = kQuestion, .timeout = kUnlimited});
  }
  const Deadline deadline = Deadline::after(kAnswersWithin);
  std::vector<std::optional<Standing>> standings(static_cast<std::size_t>(group.size()));
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const Shared::Asked& asked = shared_->asked[static_cast<std::size_t>(rank)];
    if (!asked.received) continue;
    while (!asked.received->is_completed() && !deadline.passed() &&
           !shared_->state.with([](const Shared::State& state) { return state.closed; })) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (asked.received->is_completed()) {
      asked.received->wait();
      standings[static_cast<std::size_t>(rank)] = standing_of(asked.answer);
    } else if (Clock::now() - asked.at > group.timeout()) {
      shared_->parts.abort(
          fmt::format("rank {} has not answered for {} seconds; its process may be stopped",
                      group.global_rank(rank),
                      group.timeout().count() / 1000));
    }
  }
  return standings;
}

}  // namespace peal::named
