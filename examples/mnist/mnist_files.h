// Reads the four published files of MNIST, gzipped or plain.
#pragma once

#include <filesystem>

#include "mnist/idx.h"
#include "mnist/labelled_images.h"

namespace mnist {

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with `.gz`, from a folder.
/// If only the t10k pair exists, its first nine tenths (9,000 digits) are for training and the rest
/// for tests; `source` says so.
/// Errors: usage (the t10k pair is missing; files are invalid or do not match), resource.
DigitSets read_mnist(const std::filesystem::path& folder);

/// Pairs pictures with labels. Errors: usage (shapes other than [n, rows, columns] and [n], labels
/// above 9).
LabelledImages labelled(Idx images, Idx labels);

}  // namespace mnist
