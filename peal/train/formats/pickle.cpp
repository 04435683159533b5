#include "peal/train/formats/pickle.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/train/formats/pickle_machine.h"

namespace peal::train {
namespace {

using Kind = PickleValue::Kind;

constexpr int kDeepest = 64;
constexpr std::size_t kMostVisits = 1'000'000;  // a value may occur in several places
constexpr std::size_t kLongestName = 1000;

Error malformed(const std::string& what) { return Error(ErrorKind::kMismatch, what); }

/// "module name" -> "name"
std::string name_of(const PickleValue& global) {
  return global.text.substr(global.text.find(' ') + 1);
}

/// Collects the tensors of a value.
class Collector {
 public:
  std::vector<PickledTensor> tensors;

  void visit(const PickleValue& value, const std::string& name, int depth) {
    if (++visits_ > kMostVisits || depth > kDeepest) {
      throw malformed("the pickle has too many values inside of each other");
    }
    if (value.kind == Kind::kTensor) add(value, name);
    if (value.kind == Kind::kDict) {
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const PickleValue& key = *value.items[i];
        if (key.kind != Kind::kText && key.kind != Kind::kNumber) continue;
        visit(*value.items[i + 1],
              below(name, key.kind == Kind::kText ? key.text : std::to_string(key.number)),
              depth + 1);
      }
    }
    if (value.kind == Kind::kList) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        visit(*value.items[i], below(name, std::to_string(i)), depth + 1);
      }
    }
  }

 private:
  static std::string below(const std::string& name, const std::string& key) {
    if (name.size() + key.size() > kLongestName)
      throw malformed("the pickle has a name that is too long");
    return name.empty() ? key : name + "." + key;
  }

  /// items: storage, offset, shape, strides, requires_grad, hooks and, in version 3, the type
  void add(const PickleValue& value, const std::string& name) {
    const auto refuse = [&] {
      return malformed("the tensor " + quoted_beginning(name) +
                       " of the pickle is not well-formed");
    };
    const auto& items = value.items;
    const bool has_type = value.text.ends_with("_v3");
    if (items.size() < (has_type ? 7u : 6u) || items[0]->kind != Kind::kStorage) throw refuse();
    // The storage: "storage", its class, its key, its device, its size
    const auto& storage = items[0]->items;
    if (storage.size() < 3 || storage[1]->kind != Kind::kGlobal ||
        storage[2]->kind != Kind::kText || items[1]->kind != Kind::kNumber) {
      throw refuse();
    }
    const PickleValue& type = has_type ? *items[6] : *storage[1];
    const auto shape = numbers_of(*items[2]);
    const auto strides = numbers_of(*items[3]);
    if (type.kind != Kind::kGlobal || items[1]->number < 0 || !shape || !strides ||
        shape->size() != strides->size()) {
      throw refuse();
    }
    if (!names_.insert(name).second) {
      throw malformed("the pickle has the tensor " + quoted_beginning(name) + " twice");
    }
    tensors.push_back({.name = name,
                       .storage = storage[2]->text,
                       .type = name_of(type),
                       .offset = items[1]->number,
                       .shape = *shape,
                       .strides = *strides});
  }

  static std::optional<std::vector<std::int64_t>> numbers_of(const PickleValue& list) {
    std::vector<std::int64_t> numbers;
    for (const PickleValue* item : list.items) {
      if (item->kind != Kind::kNumber || item->number < 0) return std::nullopt;
      numbers.push_back(item->number);
    }
    if (list.kind != Kind::kList || numbers.size() > 64) return std::nullopt;
    return numbers;
  }

  std::set<std::string> names_;
  std::size_t visits_ = 0;
};

}  // namespace

std::vector<PickledTensor> parse_pickled_tensors(std::string_view pickle) {
  PickleMachine machine(pickle);
  Collector collector;
  collector.visit(machine.run(), "", 0);
  return std::move(collector.tensors);
}

std::optional<std::int64_t> elements_needed(const PickledTensor& tensor) {
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return tensor.offset;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t distance = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &distance) ||
        __builtin_add_overflow(last, distance, &last)) {
      return std::nullopt;
    }
  }
  std::int64_t needed = 0;
  if (__builtin_add_overflow(last, 1, &needed)) return std::nullopt;
  return needed;
}

}  // namespace peal::train
