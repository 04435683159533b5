#include "peal/rendezvous/meeting_result.h"

#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error_bytes.h"
#include "peal/base/serialize.h"
#include "peal/rendezvous/roll_call.h"

namespace peal::rendezvous {
namespace {

constexpr std::string_view kJoined = "joined/";  // a mark for each rank
constexpr std::string_view kJoinedCount = "joined";
constexpr std::string_view kAllKnow = "all_know";

/// How long the rank that serves the store waits for a rank that may have been stopped meanwhile.
constexpr auto kLongestStay = std::chrono::seconds(10);

/// Whether the error only shows that other ranks left or are late. Another rank may know the
/// reason.
bool is_of_others(const Error& error) {
  return is_loss(error.kind()) || error.kind() == ErrorKind::kTimeout;
}

}  // namespace

std::string encode(const MeetingResult& result) {
  ByteWriter writer;
  writer.put_u8(result ? 1 : 0);
  if (result) {
    put(writer, *result);
  }
  return std::move(writer).take();
}

MeetingResult decode_result(std::string_view bytes) {
  ByteReader reader(bytes, "result");
  MeetingResult result;
  if (reader.get_u8() != 0) {
    result = get_error(reader);
  }
  reader.finish();
  return result;
}

MeetingResult propose_result(store::Store& store, const MeetingResult& result) {
  return decode_result(store.compare_set(kResultKey, "", encode(result)));
}

void stay_until_all_have_read(store::Store& store, int ranks, Deadline deadline) {
  if (store.add("readers", 1) >= ranks) store.set("all_have_read", "");
  store.get("all_have_read", deadline);
}

namespace {

/// Returns the result that counts, or `failure` if the store does not answer: the rank that serves
/// the store may itself be lost or stopped.
MeetingResult tell_others(store::Store& group, const Error& failure, int others, Deadline stay) {
  constexpr Timeout kToAnswer{100};
  MeetingResult first = failure;
  try {
    if (group.answers(Deadline::after(kToAnswer))) {
      first = propose_result(group, failure);
      if (first) stay_until_all_have_read(group, others, stay);
      return first;
    }
  } catch (const Error&) {
    // The store was lost just now, or not all ranks came in time.
  }
  std::this_thread::sleep_until(stay.at());
  return first;
}

bool has_succeeded(store::Store& group) {
  const auto text = group.try_get(kResultKey);
  return text && !decode_result(*text);
}

/// The error of a rank that has joined: `missing`, of the group's `ranks`, have not. `missing` is
/// as of the store's last answer. `timeout`: of a store that does not answer now.
Error not_joined(const std::vector<Rank>& missing, int ranks, const std::optional<Error>& timeout) {
  const auto all = static_cast<std::size_t>(ranks);
  if (!timeout)
    return missing_ranks_error(missing, all, "did not join the group in time", kAdviceIfStuck);
  const Error silent = store_unresponsive_error(*timeout);
  if (missing.size() == all) return silent;  // the store has not answered since this rank joined
  const Error last = missing_ranks_error(
      missing, all, "had not joined the group when the store last answered", kAdviceIfStuck);
  return Error(silent.kind(), fmt::format("{}; {}", silent.message(), last.message()));
}

}  // namespace

void agree_on_success(store::Store& group,
                      Rank self,
                      int ranks,
                      Deadline deadline,
                      const WhileWaiting& while_waiting) {
  constexpr Timeout kToAnswer{250};
  // The last rank to come passes the result. All others leave a mark. If the last rank stops
  // before it passes the result, its missing mark names it.
  if (group.add(kJoinedCount, 1) == ranks) {
    propose_result(group, std::nullopt);
  } else {
    group.set(key_of_rank(kJoined, self), "");
  }
  const auto size = static_cast<std::size_t>(ranks);
  std::vector<Rank> missing(size);  // when the store last answered
  std::iota(missing.begin(), missing.end(), 0);
  while (true) {
    MeetingResult result;
    std::optional<Error> timeout;
    try {
      result = decode_result(group.get(kResultKey, deadline.within(look_every(size))));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
      timeout = error;
    }
    if (result) throw Error(*result);
    if (!timeout) return;
    const bool answers = group.answers(Deadline::after(kToAnswer));
    if (answers) missing = absent_ranks(group, kJoined, missing);
    if (deadline.passed()) {
      throw not_joined(missing, ranks, answers ? std::nullopt : timeout);
    }
    try {
      while_waiting(answers ? missing : std::vector<Rank>());
    } catch (const Error&) {
      if (!has_succeeded(group)) throw;
      return;  // a rank may end as soon as all have joined
    }
  }
}

void stay_until_all_know(store::Store& group,
                         Stays stays,
                         int ranks,
                         Deadline deadline,
                         const WhileWaiting& while_waiting) {
  if (group.add("know", 1) == ranks) group.set(kAllKnow, "");
  if (stays == Stays::kNo) return;
  const Deadline longest = deadline.within(kLongestStay);
  while (!longest.passed()) {
    try {
      group.wait({std::string(kAllKnow)}, longest.within(look_every(1)));
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
    }
    while_waiting({});
  }
}

MeetingResult agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks) {
  const int others = is_loss(own.kind()) ? ranks - 1 : ranks;  // a lost rank will not come
  const Error passed(own.kind(),
                     fmt::format("rank {} could not join the group: {}", self, own.message()),
                     own.details());
  const MeetingResult first = tell_others(group, passed, others, Deadline::after(kStayAfterLoss));
  if (!first) return std::nullopt;
  const bool is_first = first->message() == passed.message();
  return is_first || !is_of_others(own) ? own : *first;
}

void check_for_failure(store::Store& group) {
  const auto text = group.try_get(kResultKey);
  if (!text) return;
  if (const MeetingResult result = decode_result(*text)) throw Error(*result);
}

}  // namespace peal::rendezvous
