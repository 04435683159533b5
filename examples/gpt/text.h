// A text as numbers, one for each character.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpt {

struct Text {
  std::vector<std::int64_t> characters;  // indices into `vocabulary`
  std::string vocabulary;                // the different characters, sorted
};

Text to_text(const std::string& characters);

/// Throws std::runtime_error if the file cannot be read, or is empty.
Text read_text(const std::filesystem::path& file);

/// Sums such as "12+7=19;", about `size` characters. The same on every machine.
Text generated_text(std::size_t size, std::uint64_t seed);

}  // namespace gpt
