// Which threads run the program's interrupt now, inside an operation of a group. Such a thread
// holds the operation's turn, so a call that waits for the turn would deadlock. Used by the native
// backend, which rejects such calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/base/interrupt.h"

namespace peal::native {

/// Threads: any number at once.
class HandlerThreads {
 public:
  /// Returns an interrupt that records its thread here while it runs. This object must outlive it.
  Interrupt noting(Interrupt interrupt) {
    if (!interrupt) return nullptr;
    return [this, interrupt = std::move(interrupt)] {
      const Running running(*this);
      interrupt();
    };
  }

  /// Whether this thread runs the interrupt. Cost: a load while no thread does.
  bool has_this_thread() const {
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    return threads_.with([](const std::vector<std::thread::id>& threads) {
      return std::ranges::find(threads, std::this_thread::get_id()) != threads.end();
    });
  }

 private:
  struct Running {
    explicit Running(HandlerThreads& a) : all(a) {
      all.threads_.with([](auto& threads) { threads.push_back(std::this_thread::get_id()); });
      all.count_.fetch_add(1);
    }
    ~Running() {
      all.count_.fetch_sub(1);
      all.threads_.with([](auto& threads) {
        threads.erase(std::ranges::find(threads, std::this_thread::get_id()));
      });
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    HandlerThreads& all;
  };

  std::atomic<int> count_ = 0;
  mutable Guarded<std::vector<std::thread::id>> threads_;
};

}  // namespace peal::native
