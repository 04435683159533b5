#include "peal/rendezvous/verdict.h"

#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/net/framing.h"
#include "peal/rendezvous/roll_call.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kVerdict = "verdict";
constexpr std::string_view kJoined = "joined/";  // a mark for each rank
constexpr std::string_view kJoinedCount = "joined";
constexpr Bytes kMaxVerdictText = 4_KiB;

/// Whether another rank may know better.
bool is_of_others(const Error& error) {
  return error.kind() == ErrorKind::kPeerLost || error.kind() == ErrorKind::kTimeout;
}

}  // namespace

std::string encode(const Verdict& verdict) {
  net::Writer writer;
  writer.put_u8(verdict ? 1 : 0);
  if (verdict) {
    writer.put_u8(static_cast<std::uint8_t>(verdict->kind()));
    writer.put_text(verdict->message().substr(0, static_cast<std::size_t>(kMaxVerdictText.value)));
  }
  return std::move(writer).take();
}

Verdict decode_verdict(std::string_view bytes) {
  net::Reader reader(bytes, "verdict");
  Verdict verdict;
  if (reader.get_u8() != 0) {
    const ErrorKind kind = error_kind_of(reader.get_u8()).value_or(ErrorKind::kBug);
    verdict = Error(kind, std::string(reader.get_text(kMaxVerdictText)));
  }
  reader.finish();
  return verdict;
}

Verdict pass(store::Store& store, const Verdict& verdict) {
  return decode_verdict(store.compare_set(kVerdict, "", encode(verdict)));
}

void stay_until_told(store::Store& store, int ranks, Deadline deadline) {
  if (store.add("told", 1) >= ranks) store.set("all_told", "");
  store.get("all_told", deadline);
}

namespace {

/// The verdict that counts; `failure` where the store does not answer: the rank that serves it may
/// be the one that is gone, or stopped.
Verdict tell_others(store::Store& group, const Error& failure, int others, Deadline stay) {
  constexpr Timeout kToAnswer{100};
  Verdict first = failure;
  try {
    if (group.answers(Deadline::after(kToAnswer))) {
      first = pass(group, failure);
      if (first) stay_until_told(group, others, stay);
      return first;
    }
  } catch (const Error&) {
    // The store was lost just now, or not all ranks came.
  }
  std::this_thread::sleep_until(stay.at());
  return first;
}

/// `missing`: of the group's `ranks`, when the store last answered. `timeout`: of a store that does
/// not answer now.
Error not_joined(const std::vector<Rank>& missing, int ranks, const std::optional<Error>& timeout) {
  const auto all = static_cast<std::size_t>(ranks);
  if (!timeout) {
    return absence(missing, all, "did not join the group in time", kLookWhatBecameOfThem);
  }
  const Error silent = silence(*timeout);
  if (missing.size() == all) return silent;  // the store has not answered since this rank joined
  const Error last = absence(
      missing, all, "had not joined the group when the store last answered", kLookWhatBecameOfThem);
  return Error(silent.kind(), fmt::format("{}; {}", silent.message(), last.message()));
}

}  // namespace

void agree_on_success(
    store::Store& group, Rank self, int ranks, Deadline deadline, const Look& look) {
  constexpr auto kLookEvery = std::chrono::milliseconds(200);
  constexpr Timeout kToAnswer{250};
  // The last rank to come passes the verdict. All others leave a mark, so that a rank which stops
  // before it can pass the verdict is known by the lack of one.
  if (group.add(kJoinedCount, 1) == ranks) {
    pass(group, std::nullopt);
  } else {
    group.set(key_of_rank(kJoined, self), "");
  }
  std::vector<Rank> missing(static_cast<std::size_t>(ranks));  // when the store last answered
  std::iota(missing.begin(), missing.end(), 0);
  while (true) {
    Verdict verdict;
    std::optional<Error> timeout;
    try {
      verdict = decode_verdict(group.get(kVerdict, deadline.within(kLookEvery)));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
      timeout = error;
    }
    if (verdict) throw Error(*verdict);
    if (!timeout) return;
    const bool answers = group.answers(Deadline::after(kToAnswer));
    const auto has_come = [&](Rank rank) {
      return group.try_get(key_of_rank(kJoined, rank)).has_value();
    };
    if (answers) std::erase_if(missing, has_come);
    if (deadline.passed()) {
      throw not_joined(missing, ranks, answers ? std::nullopt : timeout);
    }
    look(answers ? missing : std::vector<Rank>());
  }
}

Verdict agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks) {
  const bool is_loss = own.kind() == ErrorKind::kPeerLost;  // and who was lost will not come
  const Error told(own.kind(),
                   fmt::format("rank {} could not join the group: {}", self, own.message()));
  const Verdict first =
      tell_others(group, told, is_loss ? ranks - 1 : ranks, Deadline::after(kStayAfterLoss));
  if (!first) return std::nullopt;
  const bool is_first = first->message() == told.message();
  return is_first || !is_of_others(own) ? own : *first;
}

void check_for_failure(store::Store& group) {
  const auto text = group.try_get(kVerdict);
  if (!text) return;
  if (const Verdict verdict = decode_verdict(*text)) throw Error(*verdict);
}

}  // namespace peal::rendezvous
