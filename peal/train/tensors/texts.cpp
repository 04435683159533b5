#include "peal/train/tensors/texts.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace peal::train {

std::string broadcast_text(ProcessGroup& group,
                           const std::string& text,
                           Rank root,
                           Timeout timeout) {
  std::vector<std::int64_t> size = {std::ssize(text)};
  group.broadcast(size, root, {.timeout = timeout});
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size[0]));
  group.broadcast(bytes, root, {.timeout = timeout});
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> gather_texts(ProcessGroup& group,
                                      const std::string& text,
                                      Timeout timeout) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::vector<std::int64_t> size = {std::ssize(text)};
  std::vector<std::int64_t> sizes(ranks);
  group.all_gather(size, sizes, {.timeout = timeout});
  const std::vector<std::uint8_t> own(text.begin(), text.end());
  std::vector<std::vector<std::uint8_t>> parts;
  for (const std::int64_t bytes : sizes) parts.emplace_back(static_cast<std::size_t>(bytes));
  const std::vector<Buffer> buffers(parts.begin(), parts.end());
  group.all_gather(own, buffers, {.timeout = timeout});
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.emplace_back(part.begin(), part.end());
  return texts;
}

}  // namespace peal::train
