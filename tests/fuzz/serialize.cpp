// The getters of a ByteReader, called in an order that the input gives. A ByteWriter writes the
// values back as the same bytes.
#include "peal/base/serialize.h"

#include "tests/fuzz/fuzz.h"

namespace {

void copy_one(peal::ByteReader& reader, peal::ByteWriter& writer) {
  const std::uint8_t what = reader.get_u8();
  writer.put_u8(what);
  switch (what % 8) {
    case 0:
      writer.put_u8(reader.get_u8());
      break;
    case 1:
      writer.put_u16(reader.get_u16());
      break;
    case 2:
      writer.put_u32(reader.get_u32());
      break;
    case 3:
      writer.put_u64(reader.get_u64());
      break;
    case 4:
      writer.put_i32(reader.get_i32());
      break;
    case 5:
      writer.put_i64(reader.get_i64());
      break;
    case 6:
      writer.put_raw(reader.get_raw(peal::Bytes(what)));
      break;
    case 7:
      writer.put_text(reader.get_text(peal::Bytes(what)));
      break;
  }
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  ByteReader reader(input, "input");
  ByteWriter writer;
  for (;;) {
    const std::size_t before = writer.view().size();
    const auto read = unless_refused(ErrorKind::kMismatch, [&] {
      copy_one(reader, writer);
      return true;
    });
    if (!read) return;
    const std::string_view copied = writer.view();
    require(copied.size() > before && input.starts_with(copied),
            "the copy is the input's beginning");
  }
}
