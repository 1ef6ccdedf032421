#pragma once
// Texts as numbers of tokens.

#include <string>
#include <vector>

#include "train/loop/data/open.h"

namespace sdx::train::loop {

// A table of text and labels: `labels` as long as `texts`; `where[i]` is the place of row i, for messages.
struct LabelledTexts {
  std::vector<std::string> texts, labels, where;
};
// source.notes says which rows are kept.
void open_texts(const SourceRequest& r, LabelledTexts rows, Source& source);

// Labels, as words, as the array for the task's label input. Names of classes go into `names`.
Tensor labels_of_words(const SourceRequest& r, const std::vector<std::string>& words, const std::vector<std::string>& where,
                       std::vector<std::string>& names);

// Whether all of the text is a finite number.
bool finite_number(const std::string& text, double& number);

// Returns the one of `names` that `wanted` says, or the first of the usual ones; throws Error(invalid_argument) for a wanted one
// that is missing. "": there is none.
std::string column_named(const std::vector<std::string>& names, const std::string& wanted, const char* flag,
                         std::span<const char* const> usual, const std::string& where);

}  // namespace sdx::train::loop
