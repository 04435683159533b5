#include "peal/launch/elastic/starter.h"

#include <span>

#include "peal/base/error.h"
#include "peal/launch/host_list.h"
#include "peal/launch/own_host.h"

namespace peal::launch::elastic {

std::string LocalStarter::problem_with(const std::string& host) {
  const auto [known, is_new] = problems_.try_emplace(host);
  if (!is_new) return known->second;
  try {
    const HostSlots one{.name = host};
    check_own_hosts(std::span(&one, 1));
  } catch (const Error& error) {
    known->second = error.message();
  }
  return known->second;
}

}  // namespace peal::launch::elastic
