// A store that forwards each call to another one. Tests override the calls that they change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "peal/store/memory_store.h"
#include "peal/store/store.h"

namespace peal::store::testing {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> base = make_memory_store())
      : base_(std::move(base)) {}

  void set(std::string_view key, std::string_view value) override { base_->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    return base_->get(key, deadline);
  }
  std::optional<std::string> try_get(std::string_view key) override { return base_->try_get(key); }
  std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) override {
    return base_->try_get_all(keys);
  }
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return base_->add(key, amount);
  }
  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return base_->compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    base_->wait(keys, deadline);
  }
  bool erase(std::string_view key) override { return base_->erase(key); }
  void set_will(std::string_view key, std::string_view value) override {
    base_->set_will(key, value);
  }
  bool answers(Deadline deadline) override { return base_->answers(deadline); }

 private:
  std::shared_ptr<Store> base_;
};

}  // namespace peal::store::testing
