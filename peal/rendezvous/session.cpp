#include "peal/rendezvous/session.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/mac.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kKey = "session";
constexpr Bytes kMaxSessionText = 1_KiB;

}  // namespace

std::string Session::encode() const {
  ByteWriter writer;
  writer.put_text(name).put_u32(static_cast<std::uint32_t>(tokens.size()));
  for (const std::string& token : tokens) writer.put_text(token);
  return std::move(writer).take();
}

Session Session::decode(std::string_view bytes) {
  ByteReader reader(bytes, "session");
  Session session;
  session.name = reader.get_text(kMaxSessionText);
  // The list grows as tokens are read, so a huge number in the message allocates nothing.
  for (std::uint32_t left = reader.get_u32(); left > 0; --left) {
    session.tokens.emplace_back(reader.get_text(kMaxSessionText));
  }
  reader.finish();
  return session;
}

void open_session(store::Store& meeting, std::vector<std::string> tokens) {
  const Session session{net::random_hex(32), std::move(tokens)};
  meeting.compare_set(kKey, "", session.encode());
}

std::string session_name(store::Store& meeting,
                         Rank self,
                         std::string_view token,
                         Deadline deadline) {
  const Session session = Session::decode(meeting.get(kKey, deadline));
  const auto index = static_cast<std::size_t>(self);
  if (index < session.tokens.size() && session.tokens[index] == token) return session.name;
  throw Error(ErrorKind::kUsage,
              fmt::format("the session in the store where the ranks meet was made without rank {}: "
                          "another meeting uses the same keys, or another program put an earlier "
                          "value back; give each meeting keys of its own, and let no other program "
                          "reach the store",
                          self));
}

std::optional<std::string> current_session(store::Store& meeting) {
  const auto text = meeting.try_get(kKey);
  if (!text) return std::nullopt;
  return Session::decode(*text).name;
}

std::string session_prefix(const std::string& name) { return "session/" + name; }

}  // namespace peal::rendezvous
