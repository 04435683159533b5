// Runs a fuzz target over the files of its corpus and over every beginning of each file, so that
// targets are tested without libFuzzer.
//   schedule_fuzz FOLDER
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int, char** arguments) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    std::cout << entry.path() << std::endl;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> all{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t size = 0; size <= all.size(); ++size) {
      const std::vector<std::uint8_t> input(all.begin(),
                                            all.begin() + static_cast<std::ptrdiff_t>(size));
      LLVMFuzzerTestOneInput(input.data(), size);
    }
    ++files;
  }
  std::cout << files << " files" << std::endl;
  return files > 0 ? 0 : 1;
}
