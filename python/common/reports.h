// Prints peal's reports on stderr.
#pragma once

#include "peal/base/report.h"

namespace peal::python {

/// Writes each warning to stderr as "peal: ...", a repeated text only once in this process.
Report report_on_stderr();

}  // namespace peal::python
