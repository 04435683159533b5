#include "peal/train/tensors/broadcast_text.h"

#include <cstdint>
#include <vector>

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

}  // namespace peal::train
