#pragma once
// Calls as Python writes them: NAME(KEY=VALUE, …).

#include <cstddef>
#include <string>
#include <string_view>

namespace sdx::text {

struct PythonCall {
  enum class State {
    part,   // the text may be the beginning of a call
    wrong,  // it is none
    whole,
  };
  State state = State::wrong;
  std::size_t size = 0;  // of the call's text
  std::string name;
  std::string arguments;  // as JSON
};

// The call that the text begins with. Values are literals of Python or JSON: texts, numbers, lists, tuples, dictionaries, True,
// true, None, null.
PythonCall read_python_call(std::string_view text);

}  // namespace sdx::text
