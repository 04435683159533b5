#include "mnist/mnist_files.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"

#include "mnist/idx.h"

namespace mnist {
namespace {

constexpr std::uint8_t kLargestDigit = 9;

[[noreturn]] void refuse(const std::string& why) {
  throw peal::Error(peal::ErrorKind::kUsage, why);
}

/// The plain file, or else its gzipped form.
std::optional<std::filesystem::path> find(const std::filesystem::path& folder,
                                          const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::filesystem::path path = folder / (name + ending);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

/// The pair `name`-images and `name`-labels, if both exist.
std::optional<LabelledImages> read_pair(const std::filesystem::path& folder,
                                        const std::string& name) {
  const auto images = find(folder, name + "-images-idx3-ubyte");
  const auto labels = find(folder, name + "-labels-idx1-ubyte");
  if (!images || !labels) return std::nullopt;
  try {
    return labelled(read_idx(*images), read_idx(*labels));
  } catch (const peal::Error& error) {
    throw peal::Error(error.kind(),
                      fmt::format("MNIST in {}: {}", folder.string(), error.message()));
  }
}

LabelledImages part_of(const LabelledImages& all, std::size_t from, std::size_t to) {
  const std::size_t size = all.rows * all.columns;
  const auto pixel = all.pixels.begin();
  const auto label = all.labels.begin();
  const auto at = [](std::size_t index) { return static_cast<std::ptrdiff_t>(index); };
  return {.rows = all.rows,
          .columns = all.columns,
          .pixels = {pixel + at(from * size), pixel + at(to * size)},
          .labels = {label + at(from), label + at(to)}};
}

}  // namespace

LabelledImages labelled(Idx images, Idx labels) {
  if (images.shape.size() != 3) {
    refuse(fmt::format("pictures must have 3 dimensions, not {}", images.shape.size()));
  }
  if (labels.shape.size() != 1) {
    refuse(fmt::format("labels must have 1 dimension, not {}", labels.shape.size()));
  }
  if (images.shape[0] != labels.shape[0]) {
    refuse(fmt::format("{} pictures and {} labels do not match", images.shape[0], labels.shape[0]));
  }
  const auto wrong = std::find_if(
      labels.values.begin(), labels.values.end(), [](auto label) { return label > kLargestDigit; });
  if (wrong != labels.values.end()) refuse(fmt::format("label {} is not a digit", *wrong));
  return {.rows = images.shape[1],
          .columns = images.shape[2],
          .pixels = std::move(images.values),
          .labels = std::move(labels.values)};
}

DigitSets read_mnist(const std::filesystem::path& folder) {
  std::optional<LabelledImages> test = read_pair(folder, "t10k");
  if (!test) {
    refuse(fmt::format(
        "the files of MNIST are not in {}: it needs t10k-images-idx3-ubyte and "
        "t10k-labels-idx1-ubyte (plain or with .gz), and for the 60,000 training digits "
        "train-images-idx3-ubyte and train-labels-idx1-ubyte",
        folder.string()));
  }
  if (std::optional<LabelledImages> train = read_pair(folder, "train")) {
    const std::string source =
        fmt::format("MNIST: {} digits to train on, {} to test with", train->count(), test->count());
    return {std::move(*train), std::move(*test), "mnist", source};
  }
  const std::size_t all = test->count();
  const std::size_t cut = all - all / 10;
  return {part_of(*test, 0, cut),
          part_of(*test, cut, all),
          "mnist-t10k",
          fmt::format("MNIST, only the {} test digits: the first {} to train on, "
                      "the other {} to test with",
                      all,
                      cut,
                      all - cut)};
}

}  // namespace mnist
