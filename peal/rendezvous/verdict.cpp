#include "peal/rendezvous/verdict.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/net/framing.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kVerdict = "verdict";
constexpr Bytes kMaxText = 4_KiB;

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
    writer.put_text(verdict->message().substr(0, static_cast<std::size_t>(kMaxText.value)));
  }
  return std::move(writer).take();
}

Verdict decode_verdict(std::string_view bytes) {
  net::Reader reader(bytes, "verdict");
  Verdict verdict;
  if (reader.get_u8() != 0) {
    const ErrorKind kind = error_kind_of(reader.get_u8()).value_or(ErrorKind::kBug);
    verdict = Error(kind, std::string(reader.get_text(kMaxText)));
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

/// What the first rank to fail said; nothing where the store cannot be asked: who serves it may be
/// the one that is gone, or stopped.
Verdict tell_others(store::Store& group, const Error& failure, int others, Deadline stay) {
  constexpr Timeout kToAnswer{100};
  Verdict first;
  try {
    if (group.answers(Deadline::after(kToAnswer))) {
      first = pass(group, failure);
      stay_until_told(group, others, stay);
      return first;
    }
  } catch (const Error&) {
    // It was lost just now, or not all came.
  }
  std::this_thread::sleep_until(stay.at());
  return first;
}

}  // namespace

Error agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks) {
  const bool is_loss = own.kind() == ErrorKind::kPeerLost;  // and who was lost will not come
  const Error told(own.kind(),
                   fmt::format("rank {} could not join the group: {}", self, own.message()));
  const Verdict first =
      tell_others(group, told, is_loss ? ranks - 1 : ranks, Deadline::after(kStayAfterLoss));
  const bool is_first = !first || first->message() == told.message();
  return is_first || !is_of_others(own) ? own : *first;
}

void check_for_failure(store::Store& group) {
  const auto text = group.try_get(kVerdict);
  if (!text) return;
  if (const Verdict verdict = decode_verdict(*text)) throw Error(*verdict);
}

}  // namespace peal::rendezvous
