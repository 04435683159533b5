#include "peal/store/prefix_store.h"

#include <utility>

namespace peal::store {
namespace {

class PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> base, std::string prefix)
      : base_(std::move(base)), prefix_(std::move(prefix) + "/") {}

  void set(std::string_view key, std::string_view value) override { base_->set(full(key), value); }

  std::string get(std::string_view key, Deadline deadline) override {
    return base_->get(full(key), deadline);
  }

  std::optional<std::string> try_get(std::string_view key) override {
    return base_->try_get(full(key));
  }

  std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) override {
    return base_->try_get_all(full(keys));
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return base_->add(full(key), amount);
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return base_->compare_set(full(key), expected, desired);
  }

  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    base_->wait(full(keys), deadline);
  }

  bool erase(std::string_view key) override { return base_->erase(full(key)); }

  void set_will(std::string_view key, std::string_view value) override {
    base_->set_will(full(key), value);
  }

  bool answers(Deadline deadline) override { return base_->answers(deadline); }

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  std::vector<std::string> full(const std::vector<std::string>& keys) const {
    std::vector<std::string> full_keys;
    for (const std::string& key : keys) full_keys.push_back(full(key));
    return full_keys;
  }

  std::shared_ptr<Store> base_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<Store> make_prefix_store(std::shared_ptr<Store> base, std::string prefix) {
  return std::make_unique<PrefixStore>(std::move(base), std::move(prefix));
}

}  // namespace peal::store
