#include "peal/engine/fingerprint.h"

#include <fmt/format.h>

#include "peal/base/mixed.h"
#include "peal/base/serialize.h"
#include "peal/observe/operation_text.h"

namespace peal::engine {
namespace {

constexpr std::uint64_t kFingerprintMagic = 0x31'64'61'65'68'6c'65'70;  // "pelhead1"
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

/// All fields except the sequence: 24 bytes.
void pack(Packer& packer, const Fingerprint& f) {
  packer.put(f.operation).put(f.dtype).put(f.reduce).put(f.algorithm);
  packer.put(std::int32_t{f.root}).put(f.count.value).put(f.detail);
}

Fingerprint unpack(Unpacker& unpacker) {
  Fingerprint f;
  f.operation = Operation{unpacker.get<std::uint8_t>()};
  f.dtype = DType{unpacker.get<std::uint8_t>()};
  f.reduce = ReduceOp::Kind{unpacker.get<std::uint8_t>()};
  f.algorithm = unpacker.get<std::uint8_t>();
  f.root = unpacker.get<std::int32_t>();
  f.count = Elements(unpacker.get<std::int64_t>());
  f.detail = unpacker.get<std::uint64_t>();
  return f;
}

std::uint64_t number_of(const std::optional<transport::ArenaOffset>& offset) {
  return offset ? offset->value : kNowhere;
}

std::optional<transport::ArenaOffset> offset_of(std::uint64_t number) {
  if (number == kNowhere) return std::nullopt;
  return transport::ArenaOffset{number};
}

}  // namespace

std::uint64_t digest(const Fingerprint& f) {
  const auto word = [](auto value, int shift) {
    return static_cast<std::uint64_t>(value) << shift;
  };
  const std::uint64_t kinds = word(f.operation, 0) | word(f.dtype, 8) | word(f.reduce, 16) |
                              word(f.algorithm, 24) | word(f.root, 32);
  return mixed(mixed(f.detail, kinds), static_cast<std::uint64_t>(f.count.value));
}

std::string describe(const Fingerprint& f) {
  return observe::describe(
      {.operation = f.operation, .dtype = f.dtype, .reduce = f.reduce, .root = f.root},
      f.sequence,
      f.count);
}

Error mismatch(Rank self, const Fingerprint& own, Rank peer, const Fingerprint& theirs) {
  std::string text = fmt::format("ranks are in different operations: rank {} in {}, rank {} in {}",
                                 self,
                                 describe(own),
                                 peer,
                                 describe(theirs));
  if (own.algorithm != theirs.algorithm && own.operation == theirs.operation &&
      own.count == theirs.count) {
    text +=
        "; they chose different algorithms: set PEAL_ALGORITHM and PEAL_TUNE to the same values on "
        "all ranks";
  } else if (describe(own) == describe(theirs)) {
    text +=
        "; they differ in an operation before this one (for example in its root), in the counts of "
        "other blocks, or in PEAL_STAGE: make these the same on all ranks";
  }
  return Error(
      ErrorKind::kMismatch, text, {.operation = describe(own), .cause = ErrorCause::kMismatch});
}

PackedPlace::PackedPlace(const std::optional<transport::ArenaOffset>& input,
                         const std::optional<transport::ArenaOffset>& output) {
  const auto first = half(input);
  const auto second = half(output);
  word_ = first && second ? *first << 32 | *second : kElsewhere;
}

std::optional<std::uint64_t> PackedPlace::half(
    const std::optional<transport::ArenaOffset>& offset) {
  if (!offset) return 0;
  const std::uint64_t line = offset->value / kLine + 1;
  const bool fits = offset->value % kLine == 0 && line < 0xffff'ffffu;
  return fits ? std::optional(line) : std::nullopt;
}

std::optional<transport::ArenaOffset> PackedPlace::part(std::uint64_t half) {
  if (half == 0) return std::nullopt;
  return transport::ArenaOffset{(half - 1) * kLine};
}

std::array<std::byte, Header::kSize> Header::encode() const {
  std::array<std::byte, kSize> bytes{};
  Packer packer(bytes);
  packer.put(kFingerprintMagic).put(fingerprint.sequence);
  pack(packer, fingerprint);
  packer.put(link_bytes.value);
  return bytes;
}

std::optional<Header> Header::decode(std::span<const std::byte, kSize> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.get<std::uint64_t>() != kFingerprintMagic) return std::nullopt;
  Header header;
  const auto sequence = unpacker.get<std::uint64_t>();
  header.fingerprint = unpack(unpacker);
  header.fingerprint.sequence = sequence;
  header.link_bytes = Bytes(unpacker.get<std::int64_t>());
  return header;
}

transport::Notice Entry::encode() const {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  const Fingerprint& f = fingerprint;
  return {.sequence = f.sequence,
          .body = {word(f.operation) | word(f.dtype) << 8 | word(f.reduce) << 16 |
                       word(f.algorithm) << 24 | word(f.root) << 32,
                   word(f.count.value),
                   f.detail,
                   number_of(input),
                   number_of(output),
                   word(input_count.value),
                   word(output_count.value)}};
}

Entry Entry::decode(const transport::Notice& notice) {
  const auto& words = notice.body;
  const auto byte = [&](int shift) { return static_cast<std::uint8_t>(words[0] >> shift); };
  return {.fingerprint = {.sequence = notice.sequence,
                          .operation = Operation{byte(0)},
                          .dtype = DType{byte(8)},
                          .reduce = ReduceOp::Kind{byte(16)},
                          .algorithm = byte(24),
                          .root = static_cast<Rank>(words[0] >> 32),
                          .count = Elements(static_cast<std::int64_t>(words[1])),
                          .detail = words[2]},
          .input = offset_of(words[3]),
          .output = offset_of(words[4]),
          .input_count = Elements(static_cast<std::int64_t>(words[5])),
          .output_count = Elements(static_cast<std::int64_t>(words[6]))};
}

}  // namespace peal::engine
