// Files with weights. Every input is either refused or read. The header that was read is printed as
// a file that parses to the same value. So is the text about shards, which an input may be alone.
#include <algorithm>

#include "peal/train/formats/header.h"
#include "peal/train/formats/sharding_info.h"

#include "tests/fuzz/fuzz.h"

namespace {

using namespace peal;
using train::SafetensorsHeader;

SafetensorsHeader parse(std::string_view file) {
  const Bytes size(std::ssize(file));
  const Bytes text = train::safetensors_text_size(file.substr(0, 8), size);
  const auto text_size = static_cast<std::size_t>(text.value);
  return train::parse_safetensors_header(file.substr(8, text_size), size - text - 8_B);
}

void check_sharding_info(std::string_view text) {
  const auto info =
      fuzz::unless_refused(ErrorKind::kMismatch, [&] { return train::parse_sharding_info(text); });
  if (!info) return;
  fuzz::require(train::parse_sharding_info(train::print_sharding_info(*info)) == *info,
                "shards read as the same");
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  check_sharding_info(input);
  const auto header = unless_refused(ErrorKind::kMismatch, [&] { return parse(input); });
  if (!header) return;
  if (header->metadata.contains(train::kShardingInfoKey)) {
    check_sharding_info(header->metadata.at(train::kShardingInfoKey));
  }
  Bytes end;
  for (const auto& [name, tensor] : header->tensors) {
    require(0_B <= tensor.begin && tensor.begin <= tensor.end, "bytes in order");
    require(tensor.end.value <= std::ssize(input), "bytes inside of the file");
    end = std::max(end, tensor.end);
  }
  const std::string again = train::print_safetensors_header(*header) +
                            std::string(static_cast<std::size_t>(end.value), 0);
  require(parse(again) == *header, "read as the same");
}
