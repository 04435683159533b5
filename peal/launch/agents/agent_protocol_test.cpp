#include "peal/launch/agents/agent_protocol.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch::agents {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

TEST(AgentProtocolTest, ABannerIsOneLineThatReadsBack) {
  const Banner banner{.version = "1.2.3"};
  const std::string line = encode(banner);
  ASSERT_EQ(line, fmt::format("PEAL-AGENT {} 1.2.3\n", kProtocol));
  EXPECT_THAT(decode_banner(line.substr(0, line.size() - 1)), Optional(Eq(banner)));
}

TEST(AgentProtocolTest, OtherLinesAreNotABanner) {
  for (const char* const line : {"",
                                 "Welcome to node1",
                                 "PEAL-AGENT",
                                 "PEAL-AGENT 1",
                                 "PEAL-AGENT x 1.2.3",
                                 "peal-agent 1 2"}) {
    EXPECT_EQ(decode_banner(line), std::nullopt) << line;
  }
}

TEST(AgentProtocolTest, MessagesReadBack) {
  const Begin begin{.job = "j",
                    .commands = {{{"sh", "-c", "echo '$HOME'"}, "/bin:/a b"}, {{"true"}}},
                    .environment = {{"A.b", "1,\n2"}, {"EMPTY", ""}},
                    .directory = "/home/x y",
                    .grace = Timeout(5000),
                    .silence = Timeout(15'000),
                    .addresses = AddressSource::kSlurm,
                    .images = {"debian:12", "x"},
                    .container_engine = "podman"};
  EXPECT_EQ(decode_begin(encode(begin)), begin);
  const Ready ready{.exit_code = 127,
                    .problem = "no such file",
                    .commands = {{"/bin/sh", {"sh"}}, {"/bin/true", {"true", "x"}}},
                    .own = {{"HOME", "/root"}},
                    .cores = {{{0, 4}}, {{1, 5}}, {}},
                    .quota = 1.5,
                    .port = 4711,
                    .address = "10.0.0.2",
                    .launcher_address = "10.0.0.1",
                    .records = "/tmp/x",
                    .container_engine = "/usr/bin/podman",
                    .notice = "pulled"};
  EXPECT_EQ(decode_ready(encode(ready)), ready);
  EXPECT_EQ(decode_ready(encode(Ready{})), Ready{});
  const Output output{.rank = 3, .channel = Channel::kErr, .bytes = std::string("a\0\n", 3)};
  EXPECT_EQ(decode_output(encode(output)), output);
  const Record record{.name = "rank-1", .bytes = "x"};
  EXPECT_EQ(decode_record(encode(record)), record);
  const SignalOrder order{.signal = 15, .rank = 2};
  EXPECT_EQ(decode_signal(encode(order)), order);
  const RecordOrder records{.round = 3, .ranks = {1, 4}};
  EXPECT_EQ(decode_record_order(encode(records)), records);
  const EndDetail detail{1, ContainerStart::kInterrupted, 1'000'000'000'000};
  const GuardEvent event{GuardEvent::Kind::kEnded, 2, 4711, 256, detail};
  const GuardEvent decoded = decode_event(encode(event));
  EXPECT_EQ(decoded.kind, event.kind);
  EXPECT_EQ(decoded.rank, event.rank);
  EXPECT_EQ(decoded.pid, event.pid);
  EXPECT_EQ(decoded.value, event.value);
  EXPECT_EQ(decoded.detail, detail);
}

TEST(AgentProtocolTest, ACutOrLongerMessageIsAMismatch) {
  const std::string bytes = encode(Begin{.job = "j", .commands = {{{"a"}}}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode_begin(std::string_view(bytes).substr(0, size)), Error) << size;
  }
  EXPECT_THROW(decode_begin(bytes + "x"), Error);
}

std::vector<std::string> payloads(FrameReader& reader) {
  std::vector<std::string> all;
  while (const auto frame = reader.try_next()) all.push_back(frame->payload);
  return all;
}

TEST(AgentProtocolTest, FramesAreFoundForAnySplitOfTheirBytes) {
  const std::string bytes = encode(FrameKind::kEnding, "SIGTERM") + encode(FrameKind::kBeat, "") +
                            encode(FrameKind::kCollected, std::string(1000, 'x'));
  for (const std::size_t step : {1, 2, 7, 100, 5000}) {
    FrameReader reader;
    std::vector<std::string> found;
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      reader.feed(std::string_view(bytes).substr(i, step));
      for (std::string& payload : payloads(reader)) found.push_back(std::move(payload));
    }
    EXPECT_THAT(found, ElementsAre("SIGTERM", "", std::string(1000, 'x'))) << step;
  }
}

TEST(AgentProtocolTest, BytesOfAnotherProgramAreAMismatch) {
  FrameReader reader;
  reader.feed("HTTP/1.1 400 Bad Request\r\n");
  EXPECT_THROW(reader.try_next(), Error);
  FrameReader unknown;
  unknown.feed(std::string_view("\0\0\0\0\x7f", 5));
  EXPECT_THROW(unknown.try_next(), Error);
}

}  // namespace
}  // namespace peal::launch::agents
