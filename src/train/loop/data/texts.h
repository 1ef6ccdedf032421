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
// Which of the rows are kept is said in source.notes.
void open_texts(const SourceRequest& r, LabelledTexts rows, Source& source);

// Labels, as words, as the array for the task's label input. Names of classes go into `names`.
Tensor labels_of_words(const SourceRequest& r, const std::vector<std::string>& words, const std::vector<std::string>& where,
                       std::vector<std::string>& names);

// A number, all of it, that is finite.
bool finite_number(const std::string& text, double& number);

// Of the names, the one that `wanted` says, or the first of the usual ones; throws Error(invalid_argument) for a wanted one that
// is not there. "": there is none.
std::string column_named(const std::vector<std::string>& names, const std::string& wanted, const char* flag,
                         std::span<const char* const> usual, const std::string& where);

}  // namespace sdx::train::loop
