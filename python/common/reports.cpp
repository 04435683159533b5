#include "python/common/reports.h"

#include <cstdio>
#include <set>
#include <string>

#include "peal/base/guarded.h"
#include "peal/system/per_process.h"

namespace peal::python {

Report report_on_stderr() {
  return [](std::string_view message) {
    static constinit PerProcess<Guarded<std::set<std::string, std::less<>>>> said;
    const std::string text(message);
    if (!said.get().with([&](auto& all) { return all.insert(text).second; })) return;
    std::fprintf(stderr, "peal: %s\n", text.c_str());
  };
}

}  // namespace peal::python
