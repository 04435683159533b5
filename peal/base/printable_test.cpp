#include "peal/base/printable.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(PrintableTest, HarmlessTextIsUnchanged) {
  const std::string text = "rank-0.flight, \"caf\xc3\xa9\", \xe2\x82\xac, \xf0\x9f\x94\x94 \\x1b";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

TEST(PrintableTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // U+009B, CSI
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f"), "\\xc2\\x80\\xc2\\x9f");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");  // U+00A0 is a space
}

TEST(PrintableTest, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");  // CSI for a terminal that is not set to UTF-8
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xc1\x9b"), "\\xc1\\x9b");           // overlong
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(PrintableTest, InALineControlCharactersBecomeSpaces) {
  EXPECT_EQ(printable_line("two\nlines\tand \x1b[2J\xc2\x9b"), "two lines and  [2J\\xc2\\x9b");
}

TEST(PrintableTest, TextIsUtf8IfAllOfItIs) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\n\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("a\xff"));
  EXPECT_FALSE(is_utf8("a\xc3"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));  // half of a surrogate pair
}

}  // namespace
}  // namespace peal
