// The floor: the minimum cost of an operation on one machine. The buffers of all ranks are in
// memory that all ranks map. The owner of a slice reads it from all ranks, adds in registers and
// stores the result. Flags are the only synchronisation; the probe has no checks, no choices and no
// engine. Made by `work` (worker.h).
#pragma once

#include <memory>
#include <string>

#include "peal/base/units.h"
#include "peal/bench/flags.h"
#include "peal/bench/subject.h"

namespace peal::bench {

/// Variants: "plain" and "streaming" stores. f16 and bf16 are added as 16-bit integers, because the
/// floor measures memory, not conversions. `path`: the path of a file that all ranks share
/// (system/shared_file.h).
std::unique_ptr<Subject> make_probe_subject(const std::string& path,
                                            Rank rank,
                                            int ranks,
                                            Waiting waiting);

}  // namespace peal::bench
