#include "python/common/reports.h"

#include <cstdio>
#include <set>
#include <string>

#include "peal/base/guarded.h"
#include "peal/base/per_process.h"

namespace peal::python {

Report report_on_stderr() {
  return [](Severity severity, std::string_view message) {
    static constinit PerProcess<Guarded<std::set<std::string, std::less<>>>> said;
    if (severity != Severity::kWarning) return;
    const std::string text(message);
    if (!said.get().with([&](auto& all) { return all.insert(text).second; })) return;
    std::fprintf(stderr, "peal: %s\n", text.c_str());
  };
}

}  // namespace peal::python
