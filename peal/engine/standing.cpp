#include "peal/engine/standing.h"

#include <fmt/format.h>

#include "peal/engine/pack.h"

namespace peal::engine {

std::array<std::byte, Standing::kSize> Standing::encode() const {
  const Header header{fingerprint, Bytes(static_cast<std::int64_t>(before))};
  return header.encode();
}

std::optional<Standing> Standing::decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kSize) return std::nullopt;
  const std::optional<Header> header = Header::decode(bytes.first<kSize>());
  if (!header) return std::nullopt;
  return Standing{header->fingerprint, static_cast<std::uint64_t>(header->link_bytes.value)};
}

History::Judgement History::judge(Rank self, Rank peer, const Standing& theirs) const {
  const std::uint64_t sequence = theirs.fingerprint.sequence;
  if (sequence == last_ + 1 && theirs.before != last().detail) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format("ranks are in different operations: rank {} is in {}, and before it did "
                    "something else than {}, the last that rank {} has entered",
                    peer,
                    describe(theirs.fingerprint),
                    last_ == 0 ? "nothing" : describe(last()),
                    self));
  }
  if (sequence > last_) return Judgement::kTooSoon;
  const bool known = sequence > 0 && sequence + kLength > last_;
  const Fingerprint& own = entered_[sequence % kLength];
  if (known && own != theirs.fingerprint) throw mismatch(self, own, peer, theirs.fingerprint);
  return Judgement::kAgrees;
}

}  // namespace peal::engine
