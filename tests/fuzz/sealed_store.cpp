// Values of a sealed store: no bytes that a program without the secret writes are ever a value.
#include "peal/store/sealed_store.h"

#include "peal/store/memory_store.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const std::shared_ptr<store::Store> open = store::make_memory_store();
  open->set("key", input);
  const auto sealed =
      store::make_sealed_store(open, Secret("a secret of the tests"), Timeout(1000));
  const auto value =
      unless_refused(ErrorKind::kUsage, [&] { return sealed->get("key", Deadline(Clock::now())); });
  require(!value, "refused");
}
