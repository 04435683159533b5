// Lets `peal submit` finish the start of a job after Ctrl-C, so that no job runs without its id.
#pragma once

#include <signal.h>

#include <array>

namespace peal::cli {

/// While an object lives, the first SIGINT, SIGTERM or SIGHUP is only noted. After SIGINT, the user
/// reads on stderr that the start of the job continues. A second request (is_repeated in
/// system/stop_signals.h) has the default effect: it ends the process. Signals that the program
/// ignores remain ignored. At most one object exists at a time.
class HeldSignals final {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// 0: none.
  static int noted();

 private:
  static constexpr std::array kHeld = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kHeld.size()> before_{};
};

}  // namespace peal::cli
