#include "peal/rendezvous/contact.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/store/prefix_store.h"

namespace peal::rendezvous {
namespace {

using transport::Contact;

constexpr std::uint8_t kVersion = 3;
constexpr std::uint8_t kEnded = 0;  // in the place of a version
constexpr Bytes kMaxContactText = 1_KiB;
constexpr std::uint16_t kMaxAddresses = 256;
constexpr std::string_view kContactPrefix = "contact/";

/// Turns the usage error of a malformed address into a mismatch, as for every malformed contact.
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
  ByteWriter writer;
  writer.put_u8(kVersion).put_text(contact.host_id).put_text(contact.hostname);
  writer.put_i64(contact.pid).put_i64(contact.pid_namespace);
  writer.put_u8(static_cast<std::uint8_t>(contact.choice));
  const std::size_t count = std::min<std::size_t>(contact.addresses.size(), kMaxAddresses);
  writer.put_u16(static_cast<std::uint16_t>(count));
  for (std::size_t i = 0; i < count; ++i) writer.put_text(contact.addresses[i].to_string());
  return std::move(writer).take();
}

Contact decode(std::string_view bytes) {
  ByteReader reader(bytes, "contact");
  const std::uint8_t version = reader.get_u8();
  if (version != kVersion) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("a contact has version {}, but this process expects version {}: run "
                            "the same peal on all ranks",
                            version,
                            kVersion));
  }
  Contact contact;
  contact.host_id = reader.get_text(kMaxContactText);
  contact.hostname = reader.get_text(kMaxContactText);
  contact.pid = reader.get_i64();
  contact.pid_namespace = reader.get_i64();
  contact.choice = decode_choice(reader.get_u8());
  const std::uint16_t count = reader.get_u16();
  if (count > kMaxAddresses) {
    throw Error(ErrorKind::kMismatch, fmt::format("malformed contact: {} addresses", count));
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    contact.addresses.push_back(decode_address(reader.get_text(kMaxContactText)));
  }
  reader.finish();
  return contact;
}

namespace {

/// A value in the place of a contact: the rank has ended and will not publish a contact.
std::string encode_end(const std::string& process) {
  ByteWriter writer;
  writer.put_u8(kEnded).put_text(
      process.substr(0, static_cast<std::size_t>(kMaxContactText.value)));
  return std::move(writer).take();
}

/// Waits for the contacts with these keys. Returns the error if the wait times out, otherwise
/// nothing.
std::optional<Error> wait_for(store::Store& group,
                              const std::vector<std::string>& keys,
                              Deadline deadline) {
  try {
    group.wait(keys, deadline);
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTimeout) throw;
    return error;
  }
}

}  // namespace

Contact decode_of(Rank rank, std::string_view text) {
  if (text.empty() || static_cast<std::uint8_t>(text.front()) != kEnded) return decode(text);
  ByteReader reader(text, "contact");
  reader.get_u8();
  const std::string_view process = reader.get_text(kMaxContactText);
  reader.finish();
  throw Error(ErrorKind::kPeerLost,
              fmt::format("rank {} ({}) ended before it published its address", rank, process));
}

std::unique_ptr<store::Store> group_store(std::shared_ptr<store::Store> store,
                                          const std::string& group) {
  return store::make_prefix_store(std::move(store), "group/" + group + "/");
}

void set_contact_will(store::Store& group, Rank rank, const std::string& process) {
  group.set_will(key_of_rank(kContactPrefix, rank), encode_end(process));
}

void publish(store::Store& group, Rank rank, const Contact& contact) {
  group.set(key_of_rank(kContactPrefix, rank), encode(contact));
}

/// Checks all ranks regularly, so that a wait for a late rank also ends if another rank is lost.
std::vector<Contact> collect(store::Store& group,
                             std::span<const Rank> ranks,
                             Deadline deadline,
                             const WhileWaiting& while_waiting) {
  constexpr Timeout kToAnswer{250};
  std::map<Rank, Contact> found;
  std::vector<Rank> missing(ranks.begin(), ranks.end());
  while (!missing.empty()) {
    const Deadline slice = deadline.within(look_every(ranks.size()));
    const std::vector<std::string> keys = keys_of_ranks(kContactPrefix, missing);
    const std::optional<Error> timeout = wait_for(group, keys, slice);
    if (timeout && !group.answers(Deadline::after(kToAnswer))) {
      if (deadline.passed()) throw store_unresponsive_error(*timeout);
      while_waiting({});
      continue;
    }
    const auto texts = group.try_get_all(keys);
    std::vector<Rank> still_missing;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (texts.at(i)) {
        found[missing[i]] = decode_of(missing[i], *texts[i]);
      } else {
        still_missing.push_back(missing[i]);
      }
    }
    missing = std::move(still_missing);
    if (missing.empty()) break;
    while_waiting(missing);
    if (deadline.passed()) {
      throw missing_ranks_error(
          missing, ranks.size(), "did not publish their addresses in time", kAdviceIfStuck);
    }
  }
  std::vector<Contact> contacts;
  for (const Rank rank : ranks) contacts.push_back(std::move(found[rank]));
  return contacts;
}

}  // namespace peal::rendezvous
