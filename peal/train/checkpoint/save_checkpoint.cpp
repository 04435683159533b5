#include "peal/train/checkpoint/save_checkpoint.h"

#include "peal/train/checkpoint/publish.h"
#include "peal/train/checkpoint/rank_files.h"
#include "peal/train/checkpoint/together.h"

namespace peal::train {
namespace {

std::filesystem::path save(const Ranks& ranks,
                           const std::filesystem::path& folder,
                           const Checkpoint& checkpoint,
                           const SaveOptions& options) {
  const std::vector<RankFile> files = rank_files(ranks, checkpoint, options.writers);
  return publish(ranks, folder, checkpoint.step, files, options.keep);
}

}  // namespace

std::filesystem::path save_checkpoint(ProcessGroup& group,
                                      const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options) {
  return save(Ranks(group, options.timeout), folder, checkpoint, options);
}

void prepare_checkpoint_folder(ProcessGroup& group,
                               const std::filesystem::path& folder,
                               Timeout timeout) {
  check_folder(Ranks(group, timeout), folder);
}

std::filesystem::path save_checkpoint(const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options) {
  return save(Ranks(), folder, checkpoint, options);
}

}  // namespace peal::train
