#include "python/common/processes.h"

#include "peal/base/error.h"
#include "peal/system/per_process.h"

namespace peal::python {

void check_not_forked(int generation_of_group, const std::string& group, const char* instead) {
  if (generation() == generation_of_group) return;
  throw Error(ErrorKind::kUsage,
              "this process was forked from a member of the group " + group +
                  " and is not a member: call " + instead + " in this process");
}

}  // namespace peal::python
