// Adds the name of a file to errors. Used by the readers of this folder.
#pragma once

#include <c10/util/Exception.h>

#include <filesystem>
#include <string>

#include "peal/base/error.h"

namespace peal::train {

/// Calls `work`, which reads a file. The errors that it throws get the path in front of their text.
/// A mismatch becomes resource: the content is wrong, and no rank disagrees with another.
template <class Work>
decltype(auto) about_file(const std::filesystem::path& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    const bool is_damaged = error.kind() == ErrorKind::kMismatch;
    throw Error(is_damaged ? ErrorKind::kResource : error.kind(),
                path.string() + ": " + std::string(error.message()),
                error.details());
  } catch (const c10::Error& error) {  // such as memory that LibTorch cannot allocate
    throw Error(ErrorKind::kResource, path.string() + ": " + error.what_without_backtrace());
  }
}

}  // namespace peal::train
