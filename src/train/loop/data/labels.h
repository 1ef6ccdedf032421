#pragma once
// Classes by name and number.

#include <cstdint>
#include <string>
#include <vector>

#include "train/loop/task.h"

namespace sdx::train::loop {

class Classes {
 public:
  // The classes of the words that label the samples: sorted, each once. If all words are whole numbers, these are the classes'
  // numbers, and names() is empty. `known`: the names of the training data's classes, empty for numbers; null: these are the
  // training data.
  Classes(const std::vector<std::string>& words, const std::vector<std::string>* known);

  // Throws Error(invalid_argument) for a word that is not a known class.
  std::int64_t number_of(const std::string& word) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// Throws Error(invalid_argument), naming `where`, unless the label is one of the model's classes, or ignored.
void check_label(const Task& task, std::int64_t label, const std::string& where);
// The same of the number of classes that the data have names for.
void check_class_count(const Task& task, const std::vector<std::string>& names, const std::string& where);

// Whole number in the text, all of it.
bool whole_number(const std::string& text, std::int64_t& number);

}  // namespace sdx::train::loop
