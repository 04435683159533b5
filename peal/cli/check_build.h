// `horovodrun --check-build`: what this build of peal can do, in Horovod's words.
#pragma once

#include <string>

namespace peal::cli {

/// The version of Horovod whose API and options peal has.
inline constexpr const char* kHorovodVersion = "0.28.1";

/// Whether peal can be used from PyTorch.
enum class Torch : unsigned char { kWithout, kWith };

/// Horovod's table: frameworks, controllers, operations. "Gloo" stands for peal's own engine.
std::string build_table(Torch torch);

/// Of this program: LibTorch was there at the build, or the Python package around the program has
/// its module for torch.
Torch torch_of_this_build();

}  // namespace peal::cli
