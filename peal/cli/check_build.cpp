#include "peal/cli/check_build.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace peal::cli {
namespace {

namespace fs = std::filesystem;

/// The folder of the Python package has the program in bin/.
bool is_beside_module_for_torch() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::directory_iterator entry(program.parent_path().parent_path(), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with("_c10d.")) return true;
  }
  return false;
}

}  // namespace

std::string build_table(Torch torch) {
  return fmt::format(R"(Horovod v{} on peal {}:

Available Frameworks:
    [ ] TensorFlow
    [{}] PyTorch
    [ ] MXNet

Available Controllers:
    [ ] MPI
    [X] Gloo

Available Tensor Operations:
    [ ] NCCL
    [ ] DDL
    [ ] CCL
    [ ] MPI
    [X] Gloo

Gloo stands for peal's own engine.
)",
                     kHorovodVersion,
                     PEAL_VERSION,
                     torch == Torch::kWith ? 'X' : ' ');
}

Torch torch_of_this_build() {
  constexpr bool kIsBuiltWithTorch = PEAL_WITH_TORCH;
  return kIsBuiltWithTorch || is_beside_module_for_torch() ? Torch::kWith : Torch::kWithout;
}

}  // namespace peal::cli
