#include "peal/train/formats/header.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/train/formats/header_text.h"
#include "peal/train/formats/json_string.h"

namespace peal::train {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr Bytes kLongestText(100'000'000);

constexpr std::array<std::pair<std::string_view, Bytes>, 19> kElementSizes = {{
    {"BOOL", 1_B},    {"U8", 1_B},      {"I8", 1_B},          {"F8_E5M2", 1_B},
    {"F8_E4M3", 1_B}, {"F8_E8M0", 1_B}, {"F8_E4M3FNUZ", 1_B}, {"F8_E5M2FNUZ", 1_B},
    {"I16", 2_B},     {"U16", 2_B},     {"F16", 2_B},         {"BF16", 2_B},
    {"I32", 4_B},     {"U32", 4_B},     {"F32", 4_B},         {"C64", 8_B},
    {"F64", 8_B},     {"I64", 8_B},     {"U64", 8_B},
}};

Error wrong_file(const std::string& what) { return Error(ErrorKind::kMismatch, what); }

/// The size of the tensor's data; nothing if the product of the shape exceeds Bytes, also without
/// the dimensions of 0.
std::optional<Bytes> size_of(const SafetensorsHeader::Tensor& tensor, Bytes element) {
  std::int64_t size = element.value;
  bool is_empty = false;
  for (const std::int64_t extent : tensor.shape) {
    is_empty |= extent == 0;
    if (__builtin_mul_overflow(size, extent == 0 ? 1 : extent, &size)) return std::nullopt;
  }
  return is_empty ? 0_B : Bytes(size);
}

void check_tensor(const std::string& name, const SafetensorsHeader::Tensor& tensor) {
  const std::string who = "tensor " + quoted_beginning(name);
  const auto element = safetensors_element_size(tensor.dtype);
  if (!element) {
    throw wrong_file(
        fmt::format("{} has the unknown type {}", who, quoted_beginning(tensor.dtype)));
  }
  const auto size = size_of(tensor, *element);
  if (!size || tensor.begin > tensor.end || tensor.end - tensor.begin != *size) {
    throw wrong_file(fmt::format("{} of type {} and shape [{}] cannot have the bytes {} to {}",
                                 who,
                                 tensor.dtype,
                                 fmt::join(tensor.shape, ", "),
                                 tensor.begin.value,
                                 tensor.end.value));
  }
}

/// Checks that the tensors cover the data, each byte once.
void check_cover(const SafetensorsHeader& header, Bytes data_size) {
  std::vector<std::pair<const SafetensorsHeader::Tensor*, const std::string*>> order;
  for (const auto& [name, tensor] : header.tensors) order.emplace_back(&tensor, &name);
  std::ranges::sort(
      order, {}, [](const auto& one) { return std::pair(one.first->begin, one.first->end); });
  Bytes end;
  for (const auto& [tensor, name] : order) {
    if (tensor->begin != end) {
      throw wrong_file(
          fmt::format("tensor {} begins at byte {} of the data, but the tensor before it "
                      "ends at byte {}",
                      quoted_beginning(*name),
                      tensor->begin.value,
                      end.value));
    }
    end = tensor->end;
  }
  if (end != data_size) {
    throw wrong_file(fmt::format(
        "the file has {} bytes of data, but its tensors need {}", data_size.value, end.value));
  }
}

}  // namespace

std::optional<Bytes> safetensors_element_size(std::string_view dtype) {
  const auto found =
      std::ranges::find(kElementSizes, dtype, &decltype(kElementSizes)::value_type::first);
  return found == kElementSizes.end() ? std::nullopt : std::optional(found->second);
}

Bytes safetensors_text_size(std::string_view prefix, Bytes file_size) {
  const auto prefix_size = static_cast<std::size_t>(kSafetensorsPrefix.value);
  if (file_size < kSafetensorsPrefix || prefix.size() < prefix_size) {
    throw wrong_file(fmt::format("the file has {} bytes, but a safetensors file has at least 8",
                                 file_size.value));
  }
  std::uint64_t size = 0;
  for (std::size_t i = prefix_size; i-- > 0;) {
    size = size << 8 | static_cast<unsigned char>(prefix[i]);
  }
  if (size > static_cast<std::uint64_t>(kLongestText.value)) {
    throw wrong_file(
        fmt::format("the header would have {} bytes, more than the limit of {}: the file is of "
                    "another kind, or damaged",
                    size,
                    kLongestText.value));
  }
  const Bytes text(static_cast<std::int64_t>(size));
  if (text > file_size - kSafetensorsPrefix) {
    throw wrong_file(fmt::format("the header has {} bytes, but the file ends after {}",
                                 text.value,
                                 (file_size - kSafetensorsPrefix).value));
  }
  return text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, Bytes data_size) {
  SafetensorsHeader header = read_header_text(text);
  for (const auto& [name, tensor] : header.tensors) check_tensor(name, tensor);
  check_cover(header, data_size);
  return header;
}

Bytes place_tensors(SafetensorsHeader& header) {
  std::vector<std::pair<Bytes, SafetensorsHeader::Tensor*>> order;  // size of an element, tensor
  Bytes end;
  for (auto& [name, tensor] : header.tensors) {
    const auto element = safetensors_element_size(tensor.dtype);
    if (!element) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{} has the type \"{}\", which safetensors files do not have", name, tensor.dtype));
    }
    const bool negative = std::ranges::any_of(tensor.shape, [](auto extent) { return extent < 0; });
    const auto size = negative ? std::nullopt : size_of(tensor, *element);
    if (!size || __builtin_add_overflow(end.value, size->value, &end.value)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("{} has the impossible shape [{}]", name, fmt::join(tensor.shape, ", ")));
    }
    tensor.begin = 0_B;
    tensor.end = *size;
    order.emplace_back(*element, &tensor);
  }
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& one) { return one.first; });
  end = 0_B;
  for (const auto& [element, tensor] : order) {
    tensor->begin = end;
    tensor->end += end;
    end = tensor->end;
  }
  return end;
}

std::string print_safetensors_header(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{{", kMetadata);
    for (const auto& [key, value] : header.metadata) {
      text += json_string(key) + ":" + json_string(value) + ",";
    }
    text.back() = '}';
    text += ',';
  }
  for (const auto& [name, tensor] : header.tensors) {
    if (name == kMetadata) {
      throw Error(ErrorKind::kUsage,
                  "a tensor of a safetensors file cannot be called __metadata__");
    }
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                        json_string(name),
                        tensor.dtype,
                        fmt::join(tensor.shape, ","),
                        tensor.begin.value,
                        tensor.end.value);
  }
  if (text.size() > 1) text.pop_back();  // the last comma
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (std::ssize(text) > kLongestText.value) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("the names and metadata of the tensors need {} bytes, more than the "
                            "limit of {} for a safetensors file: divide the tensors between files",
                            text.size(),
                            kLongestText.value));
  }
  std::string prefix;
  for (std::size_t size = text.size(); prefix.size() < 8; size >>= 8) {
    prefix += static_cast<char>(size & 0xff);
  }
  return prefix + text;
}

}  // namespace peal::train
