#include "peal/rendezvous/contact.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/framing.h"
#include "peal/rendezvous/roll_call.h"

namespace peal::rendezvous {
namespace {

using transport::Contact;

constexpr std::uint8_t kVersion = 2;
constexpr Bytes kMaxText = 1_KiB;
constexpr std::uint16_t kMaxAddresses = 256;
constexpr std::string_view kPrefix = "contact/";

/// Every failure to understand is a mismatch here, whoever notices it.
net::Address decode_address(std::string_view text) {
  try {
    return net::Address::parse(text);
  } catch (const Error& error) {
    throw Error(ErrorKind::kMismatch, fmt::format("malformed contact: {}", error.message()));
  }
}

TransportChoice decode_choice(std::uint8_t number) {
  for (const TransportChoice choice : kAllTransportChoices) {
    if (number == static_cast<std::uint8_t>(choice)) return choice;
  }
  throw Error(ErrorKind::kMismatch, fmt::format("malformed contact: transport {}", number));
}

}  // namespace

std::string encode(const Contact& contact) {
  net::Writer writer;
  writer.put_u8(kVersion).put_text(contact.host_id).put_text(contact.hostname);
  writer.put_i64(contact.pid).put_u8(static_cast<std::uint8_t>(contact.choice));
  writer.put_u16(static_cast<std::uint16_t>(contact.addresses.size()));
  for (const net::Address& address : contact.addresses) writer.put_text(address.to_string());
  return std::move(writer).take();
}

Contact decode(std::string_view bytes) {
  net::Reader reader(bytes, "contact");
  const std::uint8_t version = reader.get_u8();
  if (version != kVersion) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("a contact of version {}, this process knows version {}: run the same "
                            "peal everywhere",
                            version,
                            kVersion));
  }
  Contact contact;
  contact.host_id = reader.get_text(kMaxText);
  contact.hostname = reader.get_text(kMaxText);
  contact.pid = reader.get_i64();
  contact.choice = decode_choice(reader.get_u8());
  const std::uint16_t count = reader.get_u16();
  if (count > kMaxAddresses) {
    throw Error(ErrorKind::kMismatch, fmt::format("malformed contact: {} addresses", count));
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    contact.addresses.push_back(decode_address(reader.get_text(kMaxText)));
  }
  reader.finish();
  return contact;
}

void publish(store::Store& store, Rank rank, const Contact& contact) {
  store.set(key_of_rank(kPrefix, rank), encode(contact));
}

std::vector<Contact> collect(store::Store& store, std::span<const Rank> ranks, Deadline deadline) {
  await_ranks(store, kPrefix, ranks, "say where they listen", deadline);
  std::vector<Contact> contacts;
  for (const Rank rank : ranks) {
    contacts.push_back(decode(store.get(key_of_rank(kPrefix, rank), deadline)));
  }
  return contacts;
}

}  // namespace peal::rendezvous
