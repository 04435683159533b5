#include "peal/engine/progress_report.h"

#include <fmt/format.h>

namespace peal::engine {

std::array<std::byte, ProgressReport::kSize> ProgressReport::encode() const {
  const Header header{fingerprint, Bytes(static_cast<std::int64_t>(before))};
  return header.encode();
}

std::optional<ProgressReport> ProgressReport::decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kSize) return std::nullopt;
  const std::optional<Header> header = Header::decode(bytes.first<kSize>());
  if (!header) return std::nullopt;
  return ProgressReport{header->fingerprint, static_cast<std::uint64_t>(header->link_bytes.value)};
}

History::Judgement History::judge(Rank self, Rank peer, const ProgressReport& theirs) const {
  const std::uint64_t sequence = theirs.fingerprint.sequence;
  if (sequence == last_ + 1 && theirs.before != last().detail) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("ranks are in different operations: rank {} is in {}, but its previous "
                            "operation was not {}, the last that rank {} entered",
                            peer,
                            describe(theirs.fingerprint),
                            last_ == 0 ? "nothing" : describe(last()),
                            self),
                {.operation = last_ == 0 ? "" : describe(last()), .cause = ErrorCause::kMismatch});
  }
  if (sequence > last_) return Judgement::kTooSoon;
  const bool known = sequence > 0 && sequence + kLength > last_;
  const Fingerprint& own = entered_[sequence % kLength];
  if (known && own != theirs.fingerprint) throw mismatch(self, own, peer, theirs.fingerprint);
  return Judgement::kAgrees;
}

}  // namespace peal::engine
