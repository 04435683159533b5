#include "peal/named/background_thread.h"

#include <utility>

#include "peal/system/thread.h"

namespace peal::named {

BackgroundThread::BackgroundThread(Work work)
    : BackgroundThread(std::move(work),
                       [](std::function<void()> body) { return start_thread(std::move(body)); }) {}

BackgroundThread::BackgroundThread(Work work, Starter starter)
    : work_(std::move(work)), starter_(std::move(starter)) {}

BackgroundThread::~BackgroundThread() { stop(); }

void BackgroundThread::start() {
  state_.with([this](State& state) {
    if (state.is_stopped || state.thread.joinable()) return;
    state.thread = starter_([this] { loop(); });
  });
}

void BackgroundThread::wake() {
  if (has_work_.load(std::memory_order_acquire)) return;
  start();
  if (has_work_.exchange(true)) return;
  state_.update([](State& state) { state.has_work = true; });
}

bool BackgroundThread::sleep(Deadline until) {
  return state_.wait(
      until, [](const State& state) { return state.is_stopped; }, [](State&) {});
}

void BackgroundThread::stop() {
  std::thread thread = state_.update([](State& state) {
    state.is_stopped = true;
    return std::move(state.thread);
  });
  if (thread.joinable()) thread.join();
}

void BackgroundThread::loop() {
  while (true) {
    bool is_stopped = false;
    state_.wait(
        Deadline(TimePoint::max()),
        [](const State& state) { return state.is_stopped || state.has_work; },
        [&](State& state) {
          is_stopped = state.is_stopped;
          state.has_work = false;
        });
    if (is_stopped) return;
    work_.run();
    has_work_.store(false);
    // If a caller of wake() saw the flag set, it had added its work before: do not miss this work.
    if (work_.is_left()) wake();
  }
}

}  // namespace peal::named
