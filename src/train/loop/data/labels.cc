#include "train/loop/data/labels.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx::train::loop {

bool whole_number(const std::string& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

Classes::Classes(const std::vector<std::string>& words, const std::vector<std::string>* known) {
  if (known != nullptr) {
    names_ = *known;
    return;
  }
  std::int64_t number = 0;
  if (std::all_of(words.begin(), words.end(), [&](const std::string& w) { return whole_number(w, number); })) return;
  const std::set<std::string> unique(words.begin(), words.end());
  names_.assign(unique.begin(), unique.end());
}

std::int64_t Classes::number_of(const std::string& word) const {
  std::int64_t number = 0;
  if (names_.empty()) {
    if (whole_number(word, number)) return number;
    fail(ErrorCode::invalid_argument, "the label '{}' is not a number, as the training data's labels are", word);
  }
  const auto it = std::lower_bound(names_.begin(), names_.end(), word);
  if (it != names_.end() && *it == word) return it - names_.begin();
  const std::string near = closest(word, names_);
  fail(ErrorCode::invalid_argument, "the label '{}' is not a class of the training data{}", word,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

void check_label(const Task& task, std::int64_t label, const std::string& where) {
  if (task.classes == 0 || label == task.ignored || (label >= 0 && label < task.classes)) return;
  fail(ErrorCode::invalid_argument,
       "{}: the label is {}, and the model has {} classes, 0 to {}; make artifacts for as many classes as the data have, or "
       "correct the labels",
       where, label, task.classes, task.classes - 1);
}

void check_class_count(const Task& task, const std::vector<std::string>& names, const std::string& where) {
  const auto count = static_cast<std::int64_t>(names.size());
  if (task.classes == 0 || count <= task.classes) return;
  fail(ErrorCode::invalid_argument, "{} has {} classes ({}{}), and the model has {}; make artifacts for {} classes", where, count,
       join(std::span(names).first(std::min<std::size_t>(names.size(), 5))), count > 5 ? ", …" : "", task.classes, count);
}

}  // namespace sdx::train::loop
