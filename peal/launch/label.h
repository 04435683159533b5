// The text before each line of a rank, on the screen. Pure. Called by the outputs of the ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/launch/options.h"
#include "peal/launch/screen.h"

namespace peal::launch {

/// "[0] ", "[n2:0] ", "[0]<stdout>:", or "".
std::string label_of(const LaunchOptions& options, Rank rank, Channel channel);

/// The label for a worker of an elastic job: "localhost[0] ", "localhost[0]<stdout>:", or "".
std::string label_of(Labels labels, std::string_view worker, Channel channel);

/// `label` after the local time, if there are timestamps: "Tue Sep 17 14:33:01 2019[0]<stdout>:".
std::string with_time(Timestamps timestamps,
                      const std::string& label,
                      std::chrono::system_clock::time_point now);

/// The length of the longest text that comes before a line.
std::size_t longest_label(const LaunchOptions& options);

}  // namespace peal::launch
