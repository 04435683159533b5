#include "peal/mail/matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::mail {
namespace {

Receive receive_of(Rank source, Tag tag, Elements count = {}) {
  return {nullptr, {source, tag, DType::kU8, count}, nullptr, {}};
}

Envelope wanted(Rank source, Tag tag) { return receive_of(source, tag).envelope; }

Frame frame_of(Tag tag, std::uint64_t id) { return {.tag = tag, .id = id}; }

TEST(MatchingTest, AMessageMatchesTheFirstReceiveOfItsSourceAndTag) {
  Matching matching;
  matching.post(receive_of(1, Tag(7), Elements(10)));
  matching.post(receive_of(2, Tag(7), Elements(20)));
  matching.post(receive_of(1, Tag(8), Elements(30)));
  matching.post(receive_of(1, Tag(7), Elements(40)));
  EXPECT_FALSE(matching.take(3, Tag(7)));
  EXPECT_FALSE(matching.take(2, Tag(8)));
  for (const Elements expected : {Elements(10), Elements(40)}) {
    const auto receive = matching.take(1, Tag(7));
    ASSERT_TRUE(receive);
    EXPECT_EQ(receive->envelope.count, expected);
  }
  EXPECT_FALSE(matching.take(1, Tag(7)));
}

TEST(MatchingTest, AReceiveFromAnySourceKeepsItsPlaceInTheOrder) {
  Matching matching;
  matching.post(receive_of(kAnySource, Tag(7), Elements(10)));
  matching.post(receive_of(1, Tag(7), Elements(20)));
  EXPECT_FALSE(matching.take(1, Tag(8)));
  EXPECT_EQ(matching.take(1, Tag(7))->envelope.count, Elements(10));
  EXPECT_EQ(matching.take(1, Tag(7))->envelope.count, Elements(20));
}

TEST(MatchingTest, AReceiveMatchesTheFirstMessageOfItsSourceAndTag) {
  Matching matching;
  matching.keep(2, frame_of(Tag(7), 1));
  matching.keep(1, frame_of(Tag(8), 2));
  matching.keep(1, frame_of(Tag(7), 3));
  matching.keep(1, frame_of(Tag(7), 4));
  const auto found = matching.find(wanted(1, Tag(7)));
  EXPECT_EQ(found->frame.id, 3u);
  EXPECT_EQ(matching.find(wanted(kAnySource, Tag(7)))->frame.id, 1u);
  EXPECT_EQ(matching.find(wanted(3, Tag(7))), matching.nowhere());
  matching.drop(found);
  EXPECT_EQ(matching.find(wanted(1, Tag(7)))->frame.id, 4u);
}

TEST(MatchingTest, AClaimedMessageMatchesNoOtherReceive) {
  Matching matching;
  const auto first = matching.keep(1, frame_of(Tag(7), 1));
  matching.keep(1, frame_of(Tag(7), 2));
  EXPECT_FALSE(matching.has_claim_on(1));
  first->claimed_by = receive_of(1, Tag(7));
  EXPECT_TRUE(matching.has_claim_on(1));
  EXPECT_FALSE(matching.has_claim_on(2));
  EXPECT_EQ(matching.find(wanted(1, Tag(7)))->frame.id, 2u);
}

TEST(MatchingTest, ExpectsTheSourcesOfWaitingReceives) {
  Matching matching;
  EXPECT_FALSE(matching.expects(1));
  matching.post(receive_of(1, Tag(7)));
  EXPECT_TRUE(matching.expects(1));
  EXPECT_FALSE(matching.expects(2));
  EXPECT_FALSE(matching.expects(kAnySource));
  matching.post(receive_of(kAnySource, Tag(7)));
  EXPECT_TRUE(matching.expects(kAnySource));
  EXPECT_FALSE(matching.expects(2));
  matching.clear();
  EXPECT_FALSE(matching.expects(1));
}

}  // namespace
}  // namespace peal::mail
