#include "peal/launch/inherited.h"

#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/rendezvous/elastic_protocol.h"

namespace peal::launch {

Variables without_those_of_a_rank(const Variables& variables) {
  const Environment environment = fixed_environment(variables);
  Variables own = variables;
  std::erase_if(own,
                [&](const auto& variable) { return is_inherited(environment, variable.first); });
  own.erase(kLaunchMark);
  own.erase(kNodeMark);
  own.erase(rendezvous::kElasticDriverVariable);
  own.erase(rendezvous::kElasticWorkerVariable);
  return own;
}

}  // namespace peal::launch
