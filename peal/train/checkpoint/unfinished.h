// Files and folders that appear under their name only when they are complete and durable. A crash
// at any moment leaves the earlier one whole. Used by save_tensors and save_checkpoint.
#pragma once

#include <filesystem>
#include <string>

#include "peal/system/fd.h"

namespace peal::train {

/// A new file or folder beside `target`, called "<target>.unfinished-<random>". While it is
/// written, a lock shows that its process lives. Works without locks, too; then leftovers of killed
/// processes stay.
class Unfinished final {
 public:
  enum class Kind : unsigned char { kFile, kFolder };

  /// Errors: resource.
  Unfinished(std::filesystem::path target, Kind kind);
  /// Removes it, unless it was published.
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Open for writing if it is a file, and for reading if it is a folder.
  const Fd& descriptor() const { return descriptor_; }

  /// Makes it durable and renames it to `target`, in the place of an earlier one. The content of a
  /// folder must be durable already.
  /// Errors: resource. The earlier one is then unchanged.
  void publish();

 private:
  void replace_folder();

  std::filesystem::path target_;
  std::filesystem::path path_;
  Kind kind_;
  Fd descriptor_;
  bool is_published_ = false;
};

/// Removes what killed processes have left of targets in `folder` whose names begin with `prefix`.
/// Ignores failures.
void remove_unfinished(const std::filesystem::path& folder, const std::string& prefix);

/// Removes a file or folder. A crash in the middle leaves nothing under its name.
/// Errors: resource.
void remove_at_once(const std::filesystem::path& path);

/// Makes the names in a folder durable. Errors: resource.
void sync_folder(const std::filesystem::path& folder);

/// Makes the content of an open file durable. Errors: resource, which names the path.
void sync_file(const Fd& file, const std::filesystem::path& path);

}  // namespace peal::train
