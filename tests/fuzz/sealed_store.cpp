// Values of a sealed store: bytes from a program without the secret are never accepted as a value.
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
  require(!value, "the forged value is rejected");
}
