#include "gpt/text.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "peal/train/data/random.h"

namespace gpt {

Text to_text(const std::string& characters) {
  const std::set<char> different(characters.begin(), characters.end());
  Text text;
  text.vocabulary.assign(different.begin(), different.end());
  for (const char character : characters) {
    text.characters.push_back(std::ranges::lower_bound(text.vocabulary, character) -
                              text.vocabulary.begin());
  }
  return text;
}

Text read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string characters{std::istreambuf_iterator<char>(in), {}};
  if (!in || characters.empty()) {
    throw std::runtime_error("cannot read a text from " + file.string());
  }
  return to_text(characters);
}

Text generated_text(std::size_t size, std::uint64_t seed) {
  peal::train::data::Random random({seed});
  std::string characters;
  while (characters.size() < size) {
    const std::uint64_t a = random.below(30), b = random.below(30);
    characters += std::to_string(a) + '+' + std::to_string(b) + '=' + std::to_string(a + b) + ';';
  }
  return to_text(characters);
}

}  // namespace gpt
