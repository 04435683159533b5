#include "peal/store/sealed_store.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/mac.h"
#include "peal/store/table.h"

namespace peal::store {
namespace {

constexpr std::chrono::microseconds kLongestPause{32'000};
constexpr std::size_t kNonceSize = 16;
constexpr std::size_t kSeal = kNonceSize + net::kMacSize;
static_assert(kSealSize == Bytes(kSeal));

class SealedStore final : public Store {
 public:
  SealedStore(std::shared_ptr<Store> base, Secret secret, Timeout timeout)
      : base_(std::move(base)), secret_(std::move(secret)), timeout_(timeout) {}

  void set(std::string_view key, std::string_view value) override {
    base_->set(key, seal(key, value));
  }

  std::string get(std::string_view key, Deadline deadline) override {
    return open(key, base_->get(key, deadline));
  }

  std::optional<std::string> try_get(std::string_view key) override {
    const auto sealed = base_->try_get(key);
    if (!sealed) return std::nullopt;
    return open(key, *sealed);
  }

  std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) override {
    auto values = base_->try_get_all(keys);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]) values[i] = open(keys.at(i), *values[i]);
    }
    return values;
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    std::int64_t sum = 0;
    exchange(key, [&](const std::optional<std::string>& value) {
      Table table;
      if (value) table.set(key, *value);
      sum = table.add(key, amount);
      return std::optional(std::to_string(sum));
    });
    return sum;
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return exchange(key, [&](const std::optional<std::string>& value) {
      const bool is_expected = value.value_or("") == expected;
      return is_expected ? std::optional<std::string>(desired) : std::nullopt;
    });
  }

  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    base_->wait(keys, deadline);
  }

  bool erase(std::string_view key) override { return base_->erase(key); }

  void set_will(std::string_view key, std::string_view value) override {
    base_->set_will(key, seal(key, value));
  }

  bool answers(Deadline deadline) override { return base_->answers(deadline); }

 private:
  std::string mac_of(std::string_view key, std::string_view nonce, std::string_view value) const {
    ByteWriter text;
    text.put_raw("peal/store").put_text(key).put_raw(nonce).put_raw(value);
    return net::hmac_sha256(secret_.text(), text.view());
  }

  std::string seal(std::string_view key, std::string_view value) const {
    std::string sealed = net::random_bytes(kNonceSize);
    sealed += mac_of(key, sealed, value);
    return sealed += value;
  }

  std::string open(std::string_view key, std::string_view sealed) const {
    if (sealed.size() >= kSeal) {
      const std::string_view value = sealed.substr(kSeal);
      const std::string mac = mac_of(key, sealed.substr(0, kNonceSize), value);
      if (net::is_same_mac(mac, sealed.substr(kNonceSize, net::kMacSize))) {
        return std::string(value);
      }
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("the value of \"{}\" in the store where the ranks meet does not bear "
                            "this job's seal: a rank has another secret{}, or another program "
                            "writes to the store; give all ranks the same PEAL_SECRET, and let no "
                            "other program reach the store",
                            key,
                            secret_.empty() ? " (this process has no secret)" : ""));
  }

  /// Replaces the key's value by `next(value)`, unless `next` returns nothing. Returns the value
  /// after that. Two sealed values are never the same, so if the key holds this call's value, this
  /// call has written it. If another rank was faster, this pauses for a random time and retries.
  template <class Next>
  std::string exchange(std::string_view key, Next&& next) {
    const Deadline deadline = Deadline::after(timeout_);
    for (std::chrono::microseconds longest{256};; longest = std::min(2 * longest, kLongestPause)) {
      const std::optional<std::string> sealed = base_->try_get(key);
      std::optional<std::string> value;
      if (sealed) value = open(key, *sealed);
      const std::optional<std::string> desired = next(value);
      if (!desired) return value.value_or("");
      const std::string wanted = seal(key, *desired);
      if (base_->compare_set(key, sealed.value_or(""), wanted) == wanted) return *desired;
      if (deadline.passed()) {
        throw Error(ErrorKind::kTimeout,
                    fmt::format("cannot write \"{}\" in the store where the ranks meet: its value "
                                "changed at each attempt until the timeout",
                                key));
      }
      std::this_thread::sleep_for(longest * static_cast<unsigned char>(wanted[0]) / 256);
    }
  }

  std::shared_ptr<Store> base_;
  Secret secret_;
  Timeout timeout_;
};

}  // namespace

std::unique_ptr<Store> make_sealed_store(std::shared_ptr<Store> base,
                                         Secret secret,
                                         Timeout timeout) {
  return std::make_unique<SealedStore>(std::move(base), std::move(secret), timeout);
}

}  // namespace peal::store
