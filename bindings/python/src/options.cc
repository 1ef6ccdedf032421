#include "options.h"

#include <array>
#include <chrono>
#include <string_view>

namespace sdx::python {
namespace {

struct Option {
  std::string_view name;
  void (*set)(SessionOptions& options, PyObject* value);
};

std::chrono::milliseconds to_duration(PyObject* object) { return std::chrono::milliseconds(to_integer(object)); }
std::size_t to_size(PyObject* object) { return static_cast<std::size_t>(to_integer(object)); }
auto to_texts(PyObject* object) { return to_list(object, to_text); }
auto to_text_pairs(PyObject* object) {
  return to_list(object, [](PyObject* pair) { return to_pair(pair, to_text, to_text); });
}

constexpr std::array kOptions{
    Option{"providers", [](SessionOptions& o, PyObject* v) { o.providers = to_texts(v); }},
    Option{"strict", [](SessionOptions& o, PyObject* v) { o.strict = to_truth(v); }},
    Option{"optimize", [](SessionOptions& o, PyObject* v) { o.optimize = to_truth(v); }},
    Option{"disabled_passes", [](SessionOptions& o, PyObject* v) { o.disabled_passes = to_texts(v); }},
    Option{"threads", [](SessionOptions& o, PyObject* v) { o.threads = static_cast<int>(to_integer(v)); }},
    Option{"thread_affinity", [](SessionOptions& o, PyObject* v) { o.thread_affinity = to_text(v); }},
    Option{"memory_limit", [](SessionOptions& o, PyObject* v) { o.memory_limit = to_size(v); }},
    Option{"plan_cache_size", [](SessionOptions& o, PyObject* v) { o.plan_cache_size = to_size(v); }},
    Option{"dimensions",
           [](SessionOptions& o, PyObject* v) {
             o.dimensions = to_list(v, [](PyObject* pair) { return to_pair(pair, to_text, to_integer); });
           }},
    Option{"profile", [](SessionOptions& o, PyObject* v) { o.profile = to_truth(v); }},
    Option{"provider_options",
           [](SessionOptions& o, PyObject* v) {
             o.provider_options = to_list(v, [](PyObject* pair) { return to_pair(pair, to_text, to_text_pairs); });
           }},
    Option{"custom_ops",
           [](SessionOptions& o, PyObject* v) {
             for (std::string& path : to_texts(v)) o.custom_ops.emplace_back(std::move(path));
           }},
    Option{"runtime", [](SessionOptions& o, PyObject* v) { o.runtime = to_text(v); }},
    Option{"provider_priority", [](SessionOptions& o, PyObject* v) { o.provider_priority = to_texts(v); }},
    Option{"platform_defaults", [](SessionOptions& o, PyObject* v) { o.platform_defaults = to_text_pairs(v); }},
    Option{"select", [](SessionOptions& o, PyObject* v) { o.select = to_text(v); }},
    Option{"tune", [](SessionOptions& o, PyObject* v) { o.tune = to_truth(v); }},
    Option{"start_on", [](SessionOptions& o, PyObject* v) { o.start_on = to_text(v); }},
    Option{"provider_timeout", [](SessionOptions& o, PyObject* v) { o.provider_timeout = to_duration(v); }},
    Option{"provider_retry", [](SessionOptions& o, PyObject* v) { o.provider_retry = to_duration(v); }},
    Option{"reject_nan", [](SessionOptions& o, PyObject* v) { o.reject_nan = to_truth(v); }},
    Option{"keep_compiled", [](SessionOptions& o, PyObject* v) { o.keep_compiled = to_truth(v); }},
    Option{"telemetry", [](SessionOptions& o, PyObject* v) { o.telemetry = to_text(v); }},
};

}  // namespace

SessionOptions to_options(PyObject* dict) {
  SessionOptions options;
  const Object items = Object::taken(PyDict_Items(dict));
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i) {
    PyObject* item = PyList_GetItem(items.get(), i);
    const std::string name = to_text(PyTuple_GetItem(item, 0));
    const Option* found = nullptr;
    for (const Option& o : kOptions) {
      if (o.name == name) found = &o;
    }
    if (found == nullptr) {
      PyErr_Format(PyExc_TypeError, "sessions have no option '%s'", name.c_str());
      throw Raised();
    }
    found->set(options, PyTuple_GetItem(item, 1));
  }
  return options;
}

}  // namespace sdx::python
