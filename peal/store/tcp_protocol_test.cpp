#include "peal/store/tcp_protocol.h"

#include <random>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::store {
namespace {

std::vector<Request> one_of_each_request() {
  return {SetRequest{"key", "value"},
          TryGetRequest{"key"},
          AddRequest{"key", -42},
          CompareSetRequest{"key", "old", "new"},
          AwaitRequest{{"one", "", "three"}, Timeout(1234)},
          EraseRequest{"key"},
          WillRequest{"key", "value"},
          TryGetAllRequest{{"one", "", "three"}}};
}

std::vector<Reply> one_of_each_reply() {
  return {Reply{},
          Reply{Outcome::kDone, {std::string("bi\0nary", 7)}},
          Reply{Outcome::kNothing, {}},
          Reply{Outcome::kMissing, {"one", "two"}},
          Reply{Outcome::kRefused, {"why"}}};
}

TEST(TcpProtocolTest, DecodeRestoresEncodedMessages) {
  for (const Request& request : one_of_each_request()) {
    EXPECT_EQ(decode_request(encode(request)), request) << request.index();
  }
  for (const Reply& reply : one_of_each_reply()) EXPECT_EQ(decode_reply(encode(reply)), reply);
}

/// Whether `decode` accepts the bytes. Rethrows every error except a mismatch.
template <class Decode>
bool accepts(Decode&& decode, const std::string& bytes) {
  try {
    decode(bytes);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMismatch) throw;
    return false;
  }
}

TEST(TcpProtocolTest, DecodeRejectsTruncatedAndExtendedMessages) {
  for (const Request& request : one_of_each_request()) {
    const std::string whole = encode(request);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(accepts(decode_request, whole.substr(0, size))) << request.index();
    }
    EXPECT_FALSE(accepts(decode_request, whole + "x")) << request.index();
  }
  for (const Reply& reply : one_of_each_reply()) {
    const std::string whole = encode(reply);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(accepts(decode_reply, whole.substr(0, size)));
    }
    EXPECT_FALSE(accepts(decode_reply, whole + "x"));
  }
}

TEST(TcpProtocolTest, DecodeRejectsUnknownKindsAndOutcomes) {
  EXPECT_FALSE(accepts(decode_request, std::string("\x06\0\0\0\0", 5)));
  EXPECT_FALSE(accepts(decode_reply, std::string("\x04\0\0\0\0", 5)));
}

TEST(TcpProtocolTest, DecodeRejectsAHugeCountOfKeysWithoutAnAllocation) {
  EXPECT_FALSE(accepts(decode_request, "\x04\xff\xff\xff\xff"));
  EXPECT_FALSE(accepts(decode_reply, std::string("\0\xff\xff\xff\xff", 5)));
}

TEST(TcpProtocolTest, ADamagedMessageIsRejectedOrDecodesToAnotherMessage) {
  std::mt19937 random(7);
  for (const Request& request : one_of_each_request()) {
    const std::string whole = encode(request);
    for (int i = 0; i < 500; ++i) {
      std::string damaged = whole;
      damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
      if (accepts(decode_request, damaged)) {
        EXPECT_EQ(encode(decode_request(damaged)), damaged);
      }
    }
  }
}

}  // namespace
}  // namespace peal::store
