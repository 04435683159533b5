// The floor: what an operation costs at least on one machine. Each rank's buffers lie in memory
// that all map; whoever owns a slice reads it from all, adds in registers and stores it where it
// belongs; flags are the only synchronisation. No check, no choice, no engine. Made by `work`
// (worker.h).
#pragma once

#include <memory>
#include <string>

#include "peal/base/units.h"
#include "peal/bench/flags.h"
#include "peal/bench/subject.h"

namespace peal::bench {

/// Variants: "plain" and "streaming" stores. f16 and bf16 are added as 16-bit integers: the floor
/// is that of the memory, not of converting. `path`: of a SharedFile that all ranks have.
std::unique_ptr<Subject> make_probe_subject(const std::string& path,
                                            Rank rank,
                                            int ranks,
                                            Waiting waiting);

}  // namespace peal::bench
