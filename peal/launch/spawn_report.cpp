#include "peal/launch/spawn_report.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

/// The error of a rank whose process ended without an exception of its function.
Error error_of_end(const ProcessEnd& end, const std::optional<Outcome>& outcome) {
  const bool killed = WIFSIGNALED(end.status);
  return Error(ErrorKind::kPeerLost,
               fmt::format("its process (pid {}) {}, {}",
                           end.pid,
                           how_it_ended(end),
                           outcome ? "after its function had returned"
                                   : "and its function neither returned nor threw"),
               {.rank = end.rank, .cause = killed ? ErrorCause::kKilled : ErrorCause::kExited});
}

Error error_of_request(const ProcessEnd& end) {
  return Error(ErrorKind::kAborted,
               end.was_stopped ? "its process was stopped until the launcher ended it"
                               : "the launcher ended it after another rank had failed",
               {.rank = end.rank, .cause = ErrorCause::kKilled});
}

std::optional<Error> error_of(const ProcessEnd& end,
                              const std::optional<Outcome>& outcome,
                              Returns returns) {
  if (outcome && outcome->error) return outcome->error;
  if (failed(end.status)) {
    return end.ended_by == EndedBy::kItself ? error_of_end(end, outcome) : error_of_request(end);
  }
  if (outcome || returns == Returns::kNothing) return std::nullopt;
  return error_of_end(end, outcome);
}

/// The message of the rank's error, without the name of the rank in front.
std::string_view message_of(const Error& error, std::size_t rank) {
  std::string_view message = error.message();
  if (const std::string name = fmt::format("rank {}: ", rank); message.starts_with(name)) {
    message.remove_prefix(name.size());
  }
  return message;
}

/// Where the postmortem of the ranks is, if there is one.
std::string pointer_to(const std::optional<PostMortem>& found) {
  return found && !found->records.empty() ? fmt::format(" (see peal why {})", found->records) : "";
}

}  // namespace

void add_victims(const Outcomes& outcomes, LaunchReport& report) {
  const auto is_victim = [&](Rank rank) {
    return std::ranges::count(report.post_mortem->victims, rank) > 0;
  };
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    if (!outcomes[i] || !outcomes[i]->error) continue;
    if (outcomes[i]->failed_by == FailedBy::kItself) continue;
    if (!report.post_mortem) report.post_mortem.emplace();
    if (!is_victim(rank)) report.post_mortem->victims.push_back(rank);
  }
  if (!report.post_mortem) return;
  const bool has_culprit = std::ranges::any_of(report.ends, [&](const ProcessEnd& end) {
    return failed_by_itself(end) && !is_victim(end.rank);
  });
  if (has_culprit) std::erase_if(report.post_mortem->causes, is_victim);
}

std::vector<std::optional<Error>> errors_of(const LaunchReport& report,
                                            const Outcomes& outcomes,
                                            Returns returns) {
  std::vector<std::optional<Error>> errors(outcomes.size());
  for (const ProcessEnd& end : report.ends) {
    const auto index = static_cast<std::size_t>(end.rank);
    errors[index] = error_of(end, outcomes[index], returns);
  }
  return errors;
}

SpawnError spawn_error(const LaunchReport& report, std::vector<std::optional<Error>> errors) {
  const ProcessEnd* const main = main_failure(report);
  const auto first = static_cast<std::size_t>(
      main != nullptr ? main->rank : std::ranges::find_if(errors, [](const auto& e) {
                                       return e.has_value();
                                     }) - errors.begin());
  const Error& error = *errors[first];
  ErrorDetails details = error.details();
  if (!details.rank) details.rank = static_cast<Rank>(first);
  if (details.cause == ErrorCause::kUnknown) details.cause = ErrorCause::kThrew;
  const std::string message = fmt::format("rank {} of {} failed: {}{}",
                                          first,
                                          errors.size(),
                                          message_of(error, first),
                                          pointer_to(report.post_mortem));
  return SpawnError(Error(error.kind(), message, std::move(details)), std::move(errors));
}

}  // namespace peal::launch
