// The operations that peers say they are in while they wait for this rank, kept until this rank can
// compare them with its own. Filled by the thread that moves the mail, compared by the thread with
// the turn of the collectives.
#pragma once

#include <atomic>
#include <map>

#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/engine/progress_report.h"

namespace peal::native {

/// Threads: any number at once.
class ProgressReports final {
 public:
  /// Replaces what the peer said before.
  void store(Rank peer, const engine::ProgressReport& report) {
    said_.with([&](auto& said) { said[peer] = report; });
    some_.store(true, std::memory_order_release);
  }

  /// Cheap enough for every operation.
  bool has_some() const noexcept { return some_.load(std::memory_order_acquire); }

  /// Compares all. Forgets those that agree, and keeps those whose operation this rank has not
  /// reached yet. Throws Error(mismatch).
  void judge(Rank self, const engine::History& history) {
    said_.with([&](auto& said) {
      std::erase_if(said, [&](const auto& entry) {
        return history.judge(self, entry.first, entry.second) ==
               engine::History::Judgement::kAgrees;
      });
      some_.store(!said.empty(), std::memory_order_release);
    });
  }

 private:
  std::atomic<bool> some_ = false;
  Guarded<std::map<Rank, engine::ProgressReport>> said_;
};

}  // namespace peal::native
