#include "python/common/processes.h"

#include "peal/base/error.h"
#include "peal/base/per_process.h"

namespace peal::python {

void check_not_forked(int generation_of_group, const std::string& group, const char* instead) {
  if (generation() == generation_of_group) return;
  throw Error(ErrorKind::kUsage,
              "this process was forked from one that is in the group " + group +
                  ", and is not in it itself: call " + instead + " here");
}

}  // namespace peal::python
