// MNIST's four files as they are published, gzipped or not.
#pragma once

#include <filesystem>

#include "peal/train/data/idx.h"
#include "peal/train/data/labelled_images.h"

namespace peal::train::data {

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with `.gz`, from a folder.
/// Where only the t10k pair is there, its first nine tenths (9,000 digits) are for training and the
/// rest to test with; `source` says so.
/// Errors: usage (no t10k pair; files that are unsound or do not belong together), resource.
DigitSets read_mnist(const std::filesystem::path& folder);

/// Pairs pictures with labels. Errors: usage (shapes other than [n, rows, columns] and [n], labels
/// above 9).
LabelledImages labelled(Idx images, Idx labels);

}  // namespace peal::train::data
