#include "options.h"

#include <cmath>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "session/options/option_table.h"

namespace sdx::python {
namespace {

// The items of a dict, or of an object that dict() accepts.
template <class Second>
auto to_pairs(PyObject* mapping, const Second& second) {
  const Object dict = Object::taken(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyDict_Type), mapping, nullptr));
  const Object items = Object::taken(PyDict_Items(dict.get()));
  return to_list(items.get(), [&](PyObject* pair) { return to_pair(pair, to_text, second); });
}

// What int(value) is.
std::int64_t to_number(PyObject* value) { return to_integer(Object::taken(PyNumber_Long(value)).get()); }

// Seconds; a time too long to count is as long as can be.
std::int64_t to_milliseconds(PyObject* value) {
  const double seconds = to_double(value);
  constexpr double kMost = 9e18;
  return std::isnan(seconds) ? -1 : static_cast<std::int64_t>(std::nearbyint(std::min(std::max(seconds * 1000, -kMost), kMost)));
}

std::string to_path(PyObject* value) { return to_text(Object::taken(PyOS_FSPath(value)).get()); }

// One overload for each type of member that is neither text nor a word.

void set(const session::SessionOption&, SessionOptions& o, bool SessionOptions::*member, PyObject* v) { o.*member = to_truth(v); }
void set(const session::SessionOption& option, SessionOptions& o, int SessionOptions::*, PyObject* v) {
  session::set_from_number(option, o, to_number(v));
}
void set(const session::SessionOption& option, SessionOptions& o, std::size_t SessionOptions::*, PyObject* v) {
  session::set_from_number(option, o, to_number(v));
}
void set(const session::SessionOption& option, SessionOptions& o, std::chrono::milliseconds SessionOptions::*, PyObject* v) {
  session::set_from_number(option, o, to_milliseconds(v));
}
void set(const session::SessionOption&, SessionOptions& o, std::filesystem::path SessionOptions::*member, PyObject* v) {
  o.*member = to_path(v);
}
void set(const session::SessionOption&, SessionOptions& o, std::vector<std::string> SessionOptions::*member, PyObject* v) {
  o.*member = to_list(v, to_text);
}
void set(const session::SessionOption&, SessionOptions& o, std::vector<std::filesystem::path> SessionOptions::*member,
         PyObject* v) {
  for (std::string& path : to_list(v, to_path)) (o.*member).emplace_back(std::move(path));
}
void set(const session::SessionOption&, SessionOptions& o, session::DimensionValues SessionOptions::*member, PyObject* v) {
  o.*member = to_list(v, [](PyObject* pair) { return to_pair(pair, to_text, to_integer); });
}
void set(const session::SessionOption&, SessionOptions& o, session::TextPairs SessionOptions::*member, PyObject* v) {
  o.*member = to_pairs(v, to_text);
}
void set(const session::SessionOption&, SessionOptions& o, session::ProviderOptions SessionOptions::*member, PyObject* v) {
  const auto own = [](PyObject* pairs) { return to_list(pairs, [](PyObject* pair) { return to_pair(pair, to_text, to_text); }); };
  o.*member = to_list(v, [&](PyObject* pair) { return to_pair(pair, to_text, own); });
}
template <class T>
void set(const session::SessionOption& option, SessionOptions& o, T SessionOptions::*, PyObject* v) {
  session::set_from_text(option, o, to_text(v));
}

}  // namespace

SessionOptions to_options(PyObject* dict) {
  SessionOptions options;
  each_item(dict, [&](const std::string& name, PyObject* value) {
    const session::SessionOption& option = session::session_option(name);
    try {
      std::visit([&](auto member) { set(option, options, member, value); }, option.member);
    } catch (const Error& e) {
      const std::string_view said = option.python.present() || option.python.name.empty() ? option.name : option.python.name;
      fail(e.code(), "{}: {}", said, e.message());
    }
  });
  return options;
}

}  // namespace sdx::python
