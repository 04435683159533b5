// Records from a wire. For the raw input, a RecordReader returns no bytes that are not in it. For
// the sealed input, it returns the input, or nothing of a changed record. The first byte is the
// size of the pieces that arrive, the second the position of the change.
#include "peal/net/record.h"

#include <algorithm>
#include <array>
#include <string>

#include "peal/base/serialize.h"

#include "tests/fuzz/fuzz.h"

namespace {

using peal::net::Pieces;
using peal::net::RecordReader;
using peal::net::RecordWriter;

std::string seal(RecordWriter& writer, std::string_view text) {
  const std::array pieces = {peal::bytes_of(text)};
  Pieces left(pieces);
  const auto record = writer.seal(left);
  return {reinterpret_cast<const char*>(record.data()), record.size()};
}

/// What the reader returns for a wire that arrives in pieces of `step` bytes.
std::string read(std::string_view wire, std::size_t step) {
  RecordReader reader;
  std::string text;
  const auto take = [&] {
    std::array<char, 100> some;
    while (const std::size_t size = reader.take(std::as_writable_bytes(std::span(some)))) {
      text.append(some.data(), size);
    }
  };
  peal::fuzz::unless_refused(peal::ErrorKind::kPeerLost, [&] {
    while (!wire.empty()) {
      const auto room = reader.room();
      peal::fuzz::require(!room.empty(), "an empty reader has room");
      const std::size_t size = std::min({step, wire.size(), room.size()});
      std::ranges::copy(peal::bytes_of(wire.substr(0, size)), room.begin());
      reader.has_come(size);
      wire.remove_prefix(size);
      take();
    }
    return true;
  });
  return text;
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  if (input.size() < 3) return;
  const std::size_t step = 1 + static_cast<unsigned char>(input[0]);
  const auto at = static_cast<std::size_t>(static_cast<unsigned char>(input[1]));
  const std::string text(input.substr(2));
  RecordWriter writer;
  std::string wire = seal(writer, text);
  wire += seal(writer, text);
  const std::string whole = read(wire, step);
  require(whole == text + text || text.size() > 64 << 10, "sealed text is read");
  wire[at % wire.size()] = static_cast<char>(wire[at % wire.size()] ^ (1 << (at % 8)));
  const std::string damaged = read(wire, step);
  require(damaged.empty() || damaged == text, "a damaged record is not read");
  const std::string_view stranger = input.substr(2);
  const std::string read_of_it = read(stranger, step);
  const auto head = static_cast<std::size_t>(net::kRecordHead.value);
  require(read_of_it.empty() || read_of_it.size() + head <= stranger.size(),
          "only bytes of the input are read");
}
