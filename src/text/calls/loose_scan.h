#pragma once
// Gemma 4's notation of objects, as JSON: keys without quotes, texts between marks of their own, which may hold quotes and line
// ends.
//
//   {city:<|"|>Rome<|"|>,days:3,list:[<|"|>a<|"|>],more:{yes:true}}

#include <cstddef>
#include <string>

namespace sdx::text {

// One object, character by character. What is neither a text, nor a key, nor a bracket goes through as it is: whether the result
// is JSON is for others to check.
class LooseScan {
 public:
  enum class Result { inside, last, not_part };

  // Appends to `json`. `last`: the object ends with `c`. `not_part`: `c` cannot stand here, and the object ends before it.
  Result feed(char c, std::string& json);

 private:
  Result open(char c, std::string& json);
  Result close(char c, std::string& json);
  Result outside(char c, std::string& json);
  void end_text();

  enum class In { nothing, text, quotes };
  In in_ = In::nothing;
  bool key_ = false;      // a key comes, or is under way
  bool colon_ = false;    // behind a key in quotes or between marks
  bool escape_ = false;   // in quotes, behind a backslash
  std::string word_;      // of a key without quotes
  std::size_t mark_ = 0;  // characters of a mark that have come
  std::string open_;      // brackets
};

}  // namespace sdx::text
