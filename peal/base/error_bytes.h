// An Error as bytes, to send to other ranks: in the mail of a group, and in the store during the
// rendezvous.
#pragma once

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/units.h"

namespace peal {

/// The most bytes that `put` writes.
inline constexpr Bytes kErrorLimit = 4_KiB;

/// Writes the error. Cuts texts that are too long.
void put(ByteWriter& writer, const Error& error);

/// Reads an error. An unknown kind becomes bug, an unknown cause becomes unknown.
/// Errors: as ByteReader.
Error get_error(ByteReader& reader);

}  // namespace peal
