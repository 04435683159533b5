// The messages between the clients and the server of a TCP store: one reply for each request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal::store {

/// Each request is an operation of Store (store.h). The server answers an AwaitRequest when all
/// keys exist or the timeout has passed.
struct SetRequest {
  std::string key, value;
  friend bool operator==(const SetRequest&, const SetRequest&) = default;
};
struct TryGetRequest {
  std::string key;
  friend bool operator==(const TryGetRequest&, const TryGetRequest&) = default;
};
struct AddRequest {
  std::string key;
  std::int64_t amount = 0;
  friend bool operator==(const AddRequest&, const AddRequest&) = default;
};
struct CompareSetRequest {
  std::string key, expected, desired;
  friend bool operator==(const CompareSetRequest&, const CompareSetRequest&) = default;
};
struct AwaitRequest {
  std::vector<std::string> keys;
  Timeout timeout{0};
  friend bool operator==(const AwaitRequest&, const AwaitRequest&) = default;
};
struct EraseRequest {
  std::string key;
  friend bool operator==(const EraseRequest&, const EraseRequest&) = default;
};
/// A last will. The server carries it out when this connection ends.
struct WillRequest {
  std::string key, value;
  friend bool operator==(const WillRequest&, const WillRequest&) = default;
};

struct TryGetAllRequest {
  std::vector<std::string> keys;
  friend bool operator==(const TryGetAllRequest&, const TryGetAllRequest&) = default;
};

/// The index of an alternative is part of the wire format: append, never reorder.
using Request = std::variant<SetRequest,
                             TryGetRequest,
                             AddRequest,
                             CompareSetRequest,
                             AwaitRequest,
                             EraseRequest,
                             WillRequest,
                             TryGetAllRequest>;

/// The numbers are part of the wire format: append, never reorder.
enum class Outcome : std::uint8_t {
  kDone = 0,  // texts[0] is the value, if the request asks for one. For a TryGetAllRequest:
              // texts[0] has for each key a '1' if it exists, else a '0'; the values follow
  kNothing,   // the key does not exist
  kMissing,   // texts are the keys that no rank has set in time
  kRefused,   // a usage error; texts[0] is its message
};

struct Reply {
  Outcome outcome = Outcome::kDone;
  std::vector<std::string> texts;
  friend bool operator==(const Reply&, const Reply&) = default;
};

/// The largest body of a frame.
inline constexpr Bytes kMaxMessage = 34_MiB;

std::string encode(const Request& request);
std::string encode(const Reply& reply);
/// Errors: mismatch for anything that `encode` did not make.
Request decode_request(std::string_view bytes);
Reply decode_reply(std::string_view bytes);

}  // namespace peal::store
