#include "tests/support/interceptor.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"

namespace peal::testing {
Interceptor::Interceptor(net::Address target)
    : target_(std::move(target)),
      listener_(net::listen_on(net::Address::parse("127.0.0.1:0"))),
      address_(net::local_address(listener_.get())),
      thread_([this] { work(); }) {}

Interceptor::~Interceptor() {
  stop_ = true;
  thread_.join();
}

void Interceptor::work() {
  while (!stop_) {
    std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
    for (const Passage& passage : passages_) {
      entries.push_back({passage.a.get(), POLLIN, 0});
      entries.push_back({passage.b.get(), POLLIN, 0});
    }
    net::poll_until(entries, Deadline::after(std::chrono::milliseconds(20)));
    std::erase_if(passages_, [this](const Passage& passage) {
      return !pass(passage.a.get(), passage.b.get(), &recorded_) ||
             !pass(passage.b.get(), passage.a.get(), nullptr);
    });
    welcome();
  }
}

void Interceptor::welcome() {
  while (auto fd = net::accept_from(listener_.get(), Deadline(Clock::now()))) {
    try {
      passages_.push_back({std::move(*fd), net::connect_to(target_, soon())});
      net::set_no_delay(passages_.back().a.get());
      net::set_no_delay(passages_.back().b.get());
    } catch (const Error&) {  // the target does not listen any more: the caller's connection closes
    }
  }
}

std::vector<std::byte> Interceptor::recorded() {
  return recorded_.with([](const auto& said) { return said; });
}

/// Returns whether both ends are still open.
bool Interceptor::pass(int from, int to, Guarded<std::vector<std::byte>>* recorded) {
  std::vector<std::byte> bytes(64 << 10);
  const net::Moved moved = net::try_read(from, bytes);
  if (moved.closed) return false;
  if (moved.bytes == 0_B) return true;
  const auto come = std::span(bytes).first(static_cast<std::size_t>(moved.bytes.value));
  if (recorded != nullptr) {
    recorded->with([&](auto& said) {
      constexpr std::size_t kKept = 512;
      const auto kept = come.first(std::min(come.size(), kKept - std::min(kKept, said.size())));
      said.insert(said.end(), kept.begin(), kept.end());
    });
  }
  if (flip_.exchange(false)) {
    come.back() ^= std::byte{1};
    has_flipped_ = true;
  }
  try {
    net::write_all(to, come, soon());
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace peal::testing
