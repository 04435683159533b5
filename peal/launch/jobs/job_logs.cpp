#include "peal/launch/jobs/job_logs.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/launch/jobs/growing_file.h"
#include "peal/launch/jobs/job_status.h"

namespace peal::launch::jobs {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

/// A rank and its node. Processes outside the world have numbers after the ranks.
struct RankPlace {
  Rank rank = 0;
  Rank node = 0;
  std::string role{};
  int index = 0;
  bool has_others = false;  // its node has several ranks
};

std::vector<RankPlace> places_of(const std::vector<RoleRecord>& roles) {
  std::vector<RankPlace> places;
  Rank node = 0;
  for (const RoleRecord& role : roles) {
    for (int index = 0; index < role.nodes; ++index, ++node) {
      for (int local = 0; local < role.ranks_per_node; ++local) {
        places.push_back({.rank = static_cast<Rank>(places.size()),
                          .node = node,
                          .role = role.name,
                          .index = index,
                          .has_others = role.ranks_per_node > 1});
      }
    }
  }
  return places;
}

/// The places that the query asks for.
std::vector<RankPlace> places_for(const Submission& submission, const LogQuery& query) {
  std::vector<RankPlace> places = places_of(submission.roles);
  if (!query.rank) return places;
  const int count = static_cast<int>(places.size());
  if (*query.rank < 0 || *query.rank >= count) {
    throw Error(ErrorKind::kUsage,
                count == 1
                    ? fmt::format("job {} has no rank {}, only rank 0", submission.id, *query.rank)
                    : fmt::format("job {} has no rank {}, only ranks 0 to {}",
                                  submission.id,
                                  *query.rank,
                                  count - 1));
  }
  return {places[static_cast<std::size_t>(*query.rank)]};
}

Error no_such_attempt(const JobFolder& folder, int attempt) {
  const std::vector<int> attempts = attempts_of(folder);
  return Error(ErrorKind::kUsage,
               attempts.empty()
                   ? fmt::format("job {} has no logs: nothing was started", folder.id())
                   : fmt::format("job {} has no logs of attempt {}; its last attempt is {}",
                                 folder.id(),
                                 attempt,
                                 attempts.back()));
}

/// The logs of all attempts from the first that the query asks for.
class Logs final {
 public:
  Logs(const JobFolder& folder, const LogQuery& query, const LogSink& sink)
      : folder_(folder),
        query_(query),
        sink_(sink),
        places_(places_for(read_submission(folder), query)) {
    const std::vector<int> attempts = attempts_of(folder);
    first_ = query.attempt.value_or(attempts.empty() ? 0 : attempts.back());
  }
  Logs(const Logs&) = delete;

  void add_new_attempts() {
    for (const int attempt : attempts_of(folder_)) {
      const bool is_wanted = query_.attempt ? attempt == first_ : attempt >= first_;
      if (!is_wanted || attempts_.contains(attempt)) continue;
      read_to_the_end();  // of the attempt before, which is over
      tell_of_failure();
      attempts_.insert(attempt);
      has_told_ = false;
      files_.clear();
      add(attempt);
    }
  }

  /// Once, after all lines of the attempt, if another attempt follows.
  void tell_of_failure() {
    if (!query_.tell || attempts_.empty() || has_told_) return;
    const auto failed = read_failure(folder_, *attempts_.rbegin());
    if (!failed) return;
    read_to_the_end();
    query_.tell(fmt::format("attempt {} failed: {}; attempt {} follows",
                            failed->attempt,
                            failed->failure,
                            failed->attempt + 1));
    has_told_ = true;
  }

  void read_new() {
    for (GrowingFile& file : files_) {
      if (file.has_grown()) file.read_new();
      let_interrupt(query_.interrupt);
    }
  }

  /// All of each log in turn.
  void read_to_the_end() {
    for (GrowingFile& file : files_) {
      file.read_new();
      file.finish();
      let_interrupt(query_.interrupt);
    }
  }

  bool has_attempts() const { return !attempts_.empty(); }

 private:
  void add(int attempt) {
    for (const RankPlace& place : places_) {
      for (const Channel channel : {Channel::kOut, Channel::kErr}) {
        files_.emplace_back(folder_.rank_log(attempt, place.rank, channel),
                            [this, &place](std::string_view line) { pass(place, line); });
      }
    }
  }

  void pass(const RankPlace& place, std::string_view line) {
    LogLine passed{.node = place.node, .role = place.role, .index = place.index, .text = line};
    if (place.has_others) passed.rank = place.rank;
    sink_(passed);
  }

  const JobFolder& folder_;
  const LogQuery& query_;
  const LogSink& sink_;
  const std::vector<RankPlace> places_;
  int first_ = 0;
  std::set<int> attempts_;
  bool has_told_ = false;  // of the failure of the last one
  std::deque<GrowingFile> files_;
};

void pause(const Interrupt& interrupt) {
  wait_or_interrupt(Deadline::after(kBetweenLooks), interrupt, [](Deadline slice) {
    std::this_thread::sleep_until(slice.at());
    return false;
  });
}

void follow(Logs& logs, const LogQuery& query, const HasEnded& has_ended) {
  while (true) {
    const bool is_over = has_ended();  // before the last look: nothing is written after the end
    logs.add_new_attempts();
    logs.tell_of_failure();
    if (is_over) return logs.read_to_the_end();
    logs.read_new();
    pause(query.interrupt);
  }
}

}  // namespace

void read_logs(const JobFolder& folder, const LogQuery& query, const LogSink& sink) {
  read_logs(folder, query, sink, [&] { return launch::has_ended(status_of(folder).state); });
}

void read_logs(const JobFolder& folder,
               const LogQuery& query,
               const LogSink& sink,
               const HasEnded& has_ended) {
  Logs logs(folder, query, sink);
  if (query.follow == Follow::kUntilTheEnd) {
    follow(logs, query, has_ended);
  } else {
    logs.add_new_attempts();
    logs.read_to_the_end();
  }
  if (query.attempt && !logs.has_attempts()) throw no_such_attempt(folder, *query.attempt);
}

}  // namespace peal::launch::jobs
