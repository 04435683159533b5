// From the bytes of a flight recorder's file to a Flight. The file may come from anywhere, and from
// a rank that was killed while it wrote.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/observe/flight.h"

namespace peal::observe {

/// Whether these are the beginning of a flight, and no other file.
bool is_flight(std::string_view bytes);

/// What the bytes say. An entry that makes no sense is skipped, and counted in Flight::torn.
/// Errors: mismatch, if they are no flight, one of another version, or not whole.
/// Cost: linear in the bytes.
Flight parse_flight(std::string_view bytes);

/// Whether the process, one of this machine, goes on recording into the file at `path`. Another may
/// have its number by now, but not the file. Source: proc(5), maps.
bool is_recorded_by(std::uint64_t pid, const std::string& path);

}  // namespace peal::observe
