#include "peal/transport/contact.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

TEST(ContactTest, TheOwnContactSaysWhereThisProcessIs) {
  const Contact contact = own_contact();
  EXPECT_EQ(contact.host_id, own_host_id());
  EXPECT_FALSE(contact.host_id.empty());
  EXPECT_FALSE(contact.hostname.empty());
  EXPECT_EQ(contact.pid, ::getpid());
  EXPECT_TRUE(contact.addresses.empty());
}

}  // namespace
}  // namespace peal::transport
