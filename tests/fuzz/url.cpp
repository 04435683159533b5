// The URL that says how ranks meet.
#include "peal/rendezvous/url.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using namespace rendezvous;
  const auto url = unless_refused(ErrorKind::kUsage, [&] { return parse_url(input); });
  if (!url) return;
  if (const auto* tcp = std::get_if<TcpUrl>(&url->way)) {
    require(!tcp->host.empty() && tcp->port != 0, "a host and a port");
  }
  if (const auto* file = std::get_if<FileUrl>(&url->way)) {
    require(file->path.starts_with('/'), "an absolute path");
  }
}
