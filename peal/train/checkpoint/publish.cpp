#include "peal/train/checkpoint/publish.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "peal/base/error.h"
#include "peal/system/fd.h"
#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/tensor_file.h"
#include "peal/train/checkpoint/unfinished.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;

/// Makes the folder and those above it, with durable names. Another rank may make them, too.
void make_folder(const fs::path& folder) {
  std::error_code failure;
  if (folder.empty() || fs::is_directory(folder, failure)) return;
  const fs::path parent =
      folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  make_folder(parent);
  fs::create_directory(folder, failure);
  if (failure) throw system_error("cannot make the folder " + folder.string(), failure.value());
  sync_folder(parent.empty() ? "." : parent);
}

void write_file(const fs::path& path, const RankFile& content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) throw system_error("cannot make " + path.string(), errno);
  write_tensors(file, path, content.tensors, content.metadata, content.offsets);
  sync_file(file, path);
}

/// Writes the files into the unpublished folder.
void write_files(const fs::path& unfinished, const std::vector<RankFile>& files) {
  std::set<fs::path> folders;
  for (const RankFile& file : files) {
    const fs::path path = unfinished / file.path;
    if (folders.insert(path.parent_path()).second) make_folder(path.parent_path());
    write_file(path, file);
  }
  for (const fs::path& folder : folders) sync_folder(folder);
}

/// Checks that rank 0 has made `unfinished` for the same step.
void check_same_step(const fs::path& unfinished, const fs::path& target) {
  const std::string ours = target.filename().string() + ".";
  if (!unfinished.filename().string().starts_with(ours)) {
    throw Error(ErrorKind::kMismatch,
                "this rank saves " + target.filename().string() + ", but rank 0 makes " +
                    unfinished.filename().string() + ": pass the same step on every rank");
  }
}

/// Checks that this rank sees the folder in which rank 0 has made `unfinished`.
void check_shared(const fs::path& unfinished) {
  std::error_code unknown;
  if (fs::exists(unfinished, unknown)) return;
  throw Error(ErrorKind::kUsage,
              unfinished.string() +
                  ", which rank 0 has made, does not exist here: all ranks need a folder that they "
                  "share");
}

/// Calls `work`, which makes and checks files in the folder. Its errors say what to do.
template <class Work>
void about_folder(const fs::path& folder, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(error.kind(),
                "checkpoints cannot be saved in " + folder.string() + ": " +
                    std::string(error.message()) +
                    ". Choose a folder that all ranks share and can write",
                error.details());
  }
}

/// Removes the checkpoints with the smallest steps.
void remove_old(const fs::path& folder, std::int64_t newest, int keep) {
  auto found = list_checkpoints(folder);
  found.erase(newest);
  for (auto old = found.begin(); keep > 0 && std::ssize(found) >= keep;) {
    try {
      remove_at_once(old->second);
    } catch (const Error& error) {
      throw Error(error.kind(),
                  "the checkpoint of step " + std::to_string(newest) +
                      " is saved, but an old one stays: " + std::string(error.message()));
    }
    old = found.erase(old);
  }
}

}  // namespace

fs::path publish(const Ranks& ranks,
                 const fs::path& folder,
                 std::int64_t step,
                 const std::vector<RankFile>& files,
                 int keep) {
  fs::path target;
  std::optional<Unfinished> unfinished;  // on rank 0
  ranks.together([&] {
    target = folder / checkpoint_name(step);
    if (ranks.rank() != 0) return;
    make_folder(folder);
    remove_unfinished(folder, "step-");
    unfinished.emplace(target, Unfinished::Kind::kFolder);
  });
  const std::string name =
      ranks.broadcast(unfinished ? unfinished->path().filename().string() : "");
  ranks.together([&] {
    check_same_step(folder / name, target);
    if (files.empty()) return;
    check_shared(folder / name);
    write_files(folder / name, files);
  });
  ranks.together([&] {
    if (ranks.rank() != 0) return;
    unfinished->publish();
    remove_old(folder, step, keep);
  });
  return target;
}

void check_folder(const Ranks& ranks, const fs::path& folder) {
  std::optional<Unfinished> trial;  // on rank 0; never published
  ranks.together([&] {
    if (ranks.rank() != 0) return;
    about_folder(folder, [&] {
      make_folder(folder);
      trial.emplace(folder / "step-trial", Unfinished::Kind::kFolder);
    });
  });
  const fs::path shared = folder / ranks.broadcast(trial ? trial->path().filename().string() : "");
  ranks.together([&] {
    check_shared(shared);
    about_folder(folder, [&] {
      const Unfinished file(shared / ("rank-" + std::to_string(ranks.rank())),
                            Unfinished::Kind::kFile);
    });
  });
}

}  // namespace peal::train
