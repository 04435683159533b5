#include "python/c10d/store.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "peal/base/error.h"

namespace peal::python {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

Bytes8 bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
std::string text_of(const Bytes8& bytes) { return {bytes.begin(), bytes.end()}; }

/// The message of a torch exception: its first line. A stack trace follows.
std::string first_line(const std::exception& exception) {
  const std::string text = exception.what();
  return text.substr(0, text.find('\n'));
}

class TorchStore final : public store::Store {
 public:
  explicit TorchStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override {
    ask("set", key, [&] { store_->set(std::string(key), bytes_of(value)); });
  }

  std::string get(std::string_view key, Deadline deadline) override {
    wait({std::string(key)}, deadline);
    return ask("get", key, [&] { return text_of(store_->get(std::string(key))); });
  }

  std::optional<std::string> try_get(std::string_view key) override {
    return ask("get", key, [&]() -> std::optional<std::string> {
      if (!store_->check({std::string(key)})) return std::nullopt;
      return text_of(store_->get(std::string(key)));
    });
  }

  // torch's counters are decimal numbers too.
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return ask("add", key, [&] { return store_->add(std::string(key), amount); });
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return ask("compare_set", key, [&] {
      return text_of(store_->compareSet(std::string(key), bytes_of(expected), bytes_of(desired)));
    });
  }

  // Polls: a client of torch's store runs one call at a time, so a waiting call would block all
  // other calls of this process.
  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    if (keys.empty()) return;
    constexpr auto kFirstPause = std::chrono::milliseconds(1);
    constexpr auto kLongestPause = std::chrono::milliseconds(20);
    auto pause = kFirstPause;
    while (!ask("check", keys.front(), [&] { return store_->check(keys); })) {
      if (deadline.passed()) {
        throw Error(ErrorKind::kTimeout,
                    "timed out waiting for the key " + missing(keys) + " in torch's store");
      }
      std::this_thread::sleep_until(deadline.within(pause).at());
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  bool erase(std::string_view key) override {
    return ask("delete", key, [&] { return store_->deleteKey(std::string(key)); });
  }

  void set_will(std::string_view, std::string_view) override {}

  // Uses torch's timeout instead of the deadline.
  bool answers(Deadline) override {
    try {
      store_->check({"peal"});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  std::string missing(const std::vector<std::string>& keys) {
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) {
      return ask("check", key, [&] { return !store_->check({key}); });
    });
    return found == keys.end() ? keys.front() : *found;
  }

  template <class Call>
  auto ask(const char* what, std::string_view key, Call&& call) -> decltype(call()) {
    try {
      return call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorKind::kResource,
                  std::string("torch's store failed at ") + what + " of the key " +
                      std::string(key) + ": " + first_line(error));
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::unique_ptr<store::Store> make_torch_store(c10::intrusive_ptr<c10d::Store> store) {
  return std::make_unique<TorchStore>(std::move(store));
}

}  // namespace peal::python
