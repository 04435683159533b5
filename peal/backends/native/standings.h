// What peers that wait for this rank have said of where they stand, until it can be compared with
// what this rank has done there. Filled by whoever moves the mail, judged by who has the turn of
// the collectives.
#pragma once

#include <atomic>
#include <map>

#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/engine/standing.h"

namespace peal::native {

/// Threads: any number at once.
class Standings final {
 public:
  /// What the peer said before does not count any more.
  void heard(Rank peer, const engine::Standing& standing) {
    said_.with([&](auto& said) { said[peer] = standing; });
    some_.store(true, std::memory_order_release);
  }

  /// Cheap enough for every operation.
  bool has_some() const noexcept { return some_.load(std::memory_order_acquire); }

  /// Forgets those that agree, and keeps those that this rank has not come to yet.
  /// Throws Error(mismatch).
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
  Guarded<std::map<Rank, engine::Standing>> said_;
};

}  // namespace peal::native
