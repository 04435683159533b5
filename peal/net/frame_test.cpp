#include "peal/net/frame.h"

#include <sys/socket.h>

#include <array>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/plain_stream.h"
#include "peal/net/socket.h"

namespace peal::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class FrameTest : public testing::Test {
 protected:
  FrameTest() {
    SocketPair pair = make_socket_pair();
    out_ = std::move(pair.a);
    in_.emplace(std::move(pair.b));
  }

  void send(std::string_view bytes) {
    write_all(out_.get(), bytes_of(bytes), Deadline::after(seconds(20)));
  }

  Fd out_;
  std::optional<PlainStream> in_;
  FrameReader reader_{100_B, "test message"};
};

TEST_F(FrameTest, FramesArriveOneByOneEvenIfTheirBytesComeSingly) {
  const std::string stream = frame_of("first") + frame_of("") + frame_of("third");
  std::vector<std::string> bodies;
  for (const char byte : stream) {
    send(std::string_view(&byte, 1));
    if (auto body = reader_.advance(*in_)) bodies.push_back(*body);
  }
  EXPECT_THAT(bodies, testing::ElementsAre("first", "", "third"));
}

TEST_F(FrameTest, TheReaderReadsNoByteOfTheNextFrame) {
  send(frame_of("first") + frame_of("second"));
  EXPECT_EQ(reader_.advance(*in_), "first");
  EXPECT_EQ(FrameReader(100_B, "test message").advance(*in_), "second");
}

TEST_F(FrameTest, TheReaderAcceptsAFrameUpToTheLimitAndRejectsALongerOne) {
  send(frame_of(std::string(100, 'x')));
  EXPECT_EQ(reader_.advance(*in_), std::string(100, 'x'));
  send(frame_of(std::string(101, 'x')));
  try {
    reader_.advance(*in_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("test message"));
  }
}

TEST_F(FrameTest, AStreamThatEndsInsideAFrameIsALostPeer) {
  send(frame_of("whole").substr(0, 6));
  EXPECT_EQ(reader_.advance(*in_), std::nullopt);
  out_.reset();
  try {
    reader_.advance(*in_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  }
}

}  // namespace
}  // namespace peal::net
