// Pickles of torch.save. Every input is either refused or read, and each tensor that was read is
// well-formed.
#include "peal/train/formats/pickle.h"

#include <algorithm>
#include <set>

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto tensors =
      unless_refused(ErrorKind::kMismatch, [&] { return train::parse_pickled_tensors(input); });
  if (!tensors) return;
  const auto is_negative = [](std::int64_t number) { return number < 0; };
  std::set<std::string> names;
  for (const train::PickledTensor& tensor : *tensors) {
    require(names.insert(tensor.name).second, "each name once");
    require(tensor.shape.size() == tensor.strides.size(), "a stride for each dimension");
    require(tensor.offset >= 0 && std::ranges::none_of(tensor.shape, is_negative) &&
                std::ranges::none_of(tensor.strides, is_negative),
            "no negative number");
    const auto needed = train::elements_needed(tensor);
    require(!needed || *needed >= tensor.offset, "a tensor after its offset");
  }
}
