#include "peal/store/memory_store.h"

#include "peal/base/guarded.h"
#include "peal/store/table.h"

namespace peal::store {
namespace {

class MemoryStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    table_.update([&](Table& table) { table.set(key, value); });
  }

  std::string get(std::string_view key, Deadline deadline) override {
    std::string value;
    const bool found = table_.wait(
        deadline,
        [&](const Table& table) { return table.find(key) != nullptr; },
        [&](Table& table) { value = *table.find(key); });
    if (!found) throw missing_keys(std::vector{std::string(key)});
    return value;
  }

  std::optional<std::string> try_get(std::string_view key) override {
    return table_.with([&](Table& table) -> std::optional<std::string> {
      const std::string* value = table.find(key);
      if (value == nullptr) return std::nullopt;
      return *value;
    });
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return table_.update([&](Table& table) { return table.add(key, amount); });
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return table_.update([&](Table& table) { return table.compare_set(key, expected, desired); });
  }

  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    const bool found = table_.wait(
        deadline, [&](const Table& table) { return table.missing(keys).empty(); }, [](Table&) {});
    if (found) return;
    const auto missing = table_.with([&](Table& table) { return table.missing(keys); });
    if (!missing.empty()) throw missing_keys(missing);
  }

  bool erase(std::string_view key) override {
    return table_.with([&](Table& table) { return table.erase(key); });
  }

  void set_will(std::string_view key, std::string_view value) override {
    check_key(key);
    check_value(key, value);
  }

  bool answers(Deadline) override { return true; }

 private:
  Guarded<Table> table_;
};

}  // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace peal::store
