// The compiled half of the Python package; sardonyx/*.py is the half that users see.

#include <algorithm>
#include <array>
#include <sdx/mapped_files.hpp>
#include <sdx/sdx.hpp>

#include "array/module.h"
#include "arrays.h"
#include "base/log.h"
#include "dropin/custom/libraries.h"
#include "entry.h"
#include "faces.h"
#include "log_queue.h"
#include "opening.h"
#include "ops/op.h"
#include "options.h"
#include "providers/cpu/cpu_provider.h"
#include "providers/interface/provider.h"
#include "quantize.h"
#include "quantize/dynamic/at_load.h"
#include "session/compiled_chain.h"
#include "session/observe/ort_trace.h"
#include "session/ort_operators.h"
#include "session/quantize_at_load.h"
#include "signals.h"
#include "speech.h"
#include "text.h"
#include "train/module.h"

namespace sdx::python {
namespace {

Object spec_to_python(const ValueSpec& spec) {
  Object shape = Object::none();
  if (spec.has_shape) {
    shape = new_list();
    for (std::size_t i = 0; i < spec.shape.size(); ++i) {
      if (spec.shape[i] >= 0) {
        append(shape, number(spec.shape[i]));
      } else if (!spec.symbols[i].empty()) {
        append(shape, text(spec.symbols[i]));
      } else {
        append(shape, Object::none());
      }
    }
  }
  return tuple(text(spec.name), text(spec.type), shape, truth(spec.has_default));
}

Object specs_to_python(const std::vector<ValueSpec>& specs) { return list_of(specs, spec_to_python); }

// The element type of "sequence(float32[n])", float32, for empty lists.
DataType innermost_type(const std::string& type) {
  const std::size_t open = type.find_last_of("( ");
  const std::size_t start = open == std::string::npos ? 0 : open + 1;
  return parse_data_type(type.substr(start, type.find_first_of("[)", start) - start));
}

bool is_container(const std::string& type) {
  return type.find("sequence(") != std::string::npos || type.find("map(") != std::string::npos;
}

NamedValues feed_to_values(const Session& session, PyObject* feed, Buffers& buffers) {
  NamedValues values;
  PyObject *key = nullptr, *borrowed = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(feed, &at, &key, &borrowed) != 0) {
    const Object object = Object::of(borrowed);  // converting it may run Python code, which may change the dict
    const std::string name = to_text(Object::taken(PyObject_Str(key)).get());
    Expected expected{name.c_str()};
    for (const ValueSpec& s : session.inputs()) {
      if (s.name != name) continue;
      expected.dtype = s.is_tensor ? s.dtype : innermost_type(s.type);
      expected.is_tensor = s.is_tensor || !is_container(s.type);
    }
    if (object.is_none() && expected.is_tensor && expected.dtype == DataType::undefined) continue;
    values.add(name, to_value(object.get(), expected, buffers));
  }
  return values;
}

// Memory for results, from a dict of arrays by name; None: none.
void bind_outputs(PyObject* arrays, RunOptions& options, Buffers& buffers) {
  if (arrays == Py_None) return;
  each_item(arrays, [&](const std::string& name, PyObject* value) {
    options.bound.emplace_back(name, to_memory(value, name.c_str(), buffers));
  });
}

Object result_to_python(const NamedValue& result, const RunOptions& options) {
  const auto is_it = [&](const auto& bound) { return bound.first == result.name; };
  if (std::any_of(options.bound.begin(), options.bound.end(), is_it)) return Object::none();
  return to_python(result.value);
}

// run(feed, outputs, timeout in milliseconds or None, CancelToken or None, memory for outputs or None): None for those outputs.
Object run(PyObject* self, PyObject* arguments) {
  const Session& session = value_of<Session>(self);
  expect_arguments(arguments, 5);
  PyObject* feed = argument(arguments, 0);
  if (PyDict_Check(feed) == 0) {
    PyErr_Format(PyExc_TypeError, "the feed must be a dict, received %R", feed);
    throw Raised();
  }
  Buffers buffers;
  const NamedValues inputs = feed_to_values(session, feed, buffers);
  RunOptions options;
  options.outputs = to_list(argument(arguments, 1), to_text);
  if (argument(arguments, 2) != Py_None) options.timeout = std::chrono::milliseconds(to_integer(argument(arguments, 2)));
  if (argument(arguments, 3) != Py_None) options.cancel = value_of<CancelToken>(argument(arguments, 3));
  bind_outputs(argument(arguments, 4), options, buffers);
  const NamedValues results = interruptible([&] { return session.run(inputs, options); });
  return list_of(results, [&](const NamedValue& v) { return result_to_python(v, options); });
}

Object node_to_python(const NodeReport& n) {
  Object d = new_dict();
  set(d, "name", text(n.name));
  set(d, "op", text(n.op));
  set(d, "provider", text(n.provider));
  set(d, "kernel", text(n.kernel));
  set(d, "refused", texts(n.refused));
  set(d, "timed_ms", list_of(n.timed, [](const auto& t) { return tuple(text(t.first), number(t.second)); }));
  set(d, "output", text(n.output));
  return d;
}

Object chain_to_python(const ChainReport& c) {
  Object d = new_dict();
  set(d, "providers", texts(c.providers));
  set(d, "state", text(c.state));
  set(d, "runs", number(c.runs));
  set(d, "failures", number(c.failures));
  return d;
}

Object measured_to_python(const MeasuredProvider& m) {
  Object d = new_dict();
  set(d, "provider", text(m.provider));
  set(d, "median_ms", number(m.median_ms));
  set(d, "compile_ms", number(m.compile_ms));
  set(d, "chosen", truth(m.chosen));
  set(d, "note", text(m.note));
  return d;
}

Object report(PyObject* self, PyObject*) {
  const Session& session = value_of<Session>(self);
  const Report r = unlocked([&] { return session.report(); });
  Object d = new_dict();
  set(d, "model", text(r.model));
  set(d, "runtime", text(r.runtime));
  set(d, "providers", texts(r.providers));
  set(d, "nodes", list_of(r.nodes, node_to_python));
  set(d, "fallbacks", texts(r.fallbacks));
  set(d, "warnings", texts(r.warnings));
  set(d, "why", text(r.why));
  set(d, "events", texts(r.events));
  set(d, "chains", list_of(r.chains, chain_to_python));
  set(d, "measured", list_of(r.measured, measured_to_python));
  set(d, "load_ms", number(r.load_ms));
  set(d, "init_ms", number(r.init_ms));
  set(d, "compiled", text(r.compiled));
  set(d, "peak_bytes", number(static_cast<std::uint64_t>(r.peak_bytes)));
  set(d, "text", text(r.text()));
  return d;
}

Object providers_to_python(PyObject*, PyObject*) {
  return list_of(unlocked([] { return sdx::providers(); }), [](const ProviderInfo& p) {
    Object d = new_dict();
    set(d, "name", text(p.name));
    set(d, "ort_name", text(p.ort_name));
    set(d, "hardware", text(p.hardware));
    set(d, "available", truth(p.available));
    set(d, "reason", text(p.reason));
    set(d, "hint", text(p.hint));
    set(d, "version", text(p.version));
    set(d, "devices", texts(p.devices));
    return d;
  });
}

Object types_to_python(ops::TypeSet types) {
  Object out = new_list();
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if ((types & ops::bit(type)) != 0) append(out, text(name(type)));
  }
  if ((types & ops::types::sequence) != 0) append(out, text("sequence"));
  if ((types & ops::types::optional) != 0) append(out, text("optional"));
  if ((types & ops::types::map) != 0) append(out, text("map"));
  return out;
}

Object formal_to_python(const ops::Formal& f) {
  constexpr std::array kArities = {"required", "optional", "variadic"};
  return tuple(text(f.name), text(f.type_var), text(kArities.at(static_cast<std::size_t>(f.arity))), types_to_python(f.types));
}

// The table of operators, for the tests that compare it with ONNX's own: a dict a definition.
Object operators(PyObject*, PyObject*) {
  return list_of(ops::table().all(), [](const ops::OpDef& def) {
    Object d = new_dict();
    set(d, "domain", text(def.domain));
    set(d, "name", text(def.name));
    set(d, "since", number(std::int64_t{def.since}));
    set(d, "deprecated_at", number(std::int64_t{def.deprecated_at}));
    set(d, "inputs", list_of(def.inputs, formal_to_python));
    set(d, "outputs", list_of(def.outputs, formal_to_python));
    set(d, "attributes", list_of(def.attributes, [](const ops::AttrDef& a) { return tuple(text(a.name), truth(a.required)); }));
    return d;
  });
}

Object inputs(PyObject* self, PyObject*) { return specs_to_python(value_of<Session>(self).inputs()); }
Object outputs(PyObject* self, PyObject*) { return specs_to_python(value_of<Session>(self).outputs()); }
Object pairs_to_python(const std::vector<std::pair<std::string, std::string>>& pairs) {
  return list_of(pairs, [](const auto& m) { return tuple(text(m.first), text(m.second)); });
}
Object metadata(PyObject* self, PyObject*) { return pairs_to_python(value_of<Session>(self).metadata()); }
Object custom_metadata(PyObject* self, PyObject*) { return pairs_to_python(value_of<Session>(self).custom_metadata()); }

Object write_trace(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string path = to_text(argument(arguments, 0));
  const Session& session = value_of<Session>(self);
  unlocked([&] { session::write_ort_trace(path, session.profile(), session::opening_of(session)); });
  return Object::none();
}

Object dump(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string stage = to_text(argument(arguments, 0));
  const Session& session = value_of<Session>(self);
  return text(unlocked([&] { return session.dump(stage); }));
}

Object cancel_token(PyObject*, PyObject*) { return instance_of(CancelToken()); }
Object cancel(PyObject* self, PyObject*) {
  value_of<CancelToken>(self).cancel();
  return Object::none();
}
Object cancelled(PyObject* self, PyObject*) { return truth(value_of<CancelToken>(self).cancelled()); }

// ONNX Runtime's name of a provider by any of its names; an intent ("gpu") as it is. Looks at nothing.
Object ort_name(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string canonical = canonical_provider(to_text(argument(arguments, 0)));
  const std::string plain = canonical.starts_with("ort:") ? canonical.substr(4) : canonical;
  for (const ProviderName& p : provider_names()) {
    if (p.name == plain) return text(p.ort_name);
  }
  return text(plain);
}

Object ignored_cpu_options(PyObject*, PyObject*) { return list_of(cpu::ignored_options(), text); }
Object pass_names_to_python(PyObject*, PyObject*) { return texts(pass_names()); }
Object version_to_python(PyObject*, PyObject*) { return text(version()); }

Object set_log_level(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  log::set_level(static_cast<log::Level>(to_integer(argument(arguments, 0))));
  return Object::none();
}

Object survive_mapped_faults_from_python(PyObject*, PyObject*) {
  survive_mapped_faults();
  return Object::none();
}

Object check_mapped_files_from_python(PyObject*, PyObject*) {
  check_mapped_files();
  return Object::none();
}

Object set_seed(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  session::set_first_seed(static_cast<std::uint64_t>(to_integer(argument(arguments, 0))));
  return Object::none();
}

// Each with its signature, as inspect.signature() reads it; _sardonyx.pyi adds the types.
PyMethodDef session_methods[] = {
    {"inputs", &entry<inputs>, METH_NOARGS, "inputs($self, /)\n--\n\n"},
    {"outputs", &entry<outputs>, METH_NOARGS, "outputs($self, /)\n--\n\n"},
    {"metadata", &entry<metadata>, METH_NOARGS, "metadata($self, /)\n--\n\n"},
    {"custom_metadata", &entry<custom_metadata>, METH_NOARGS, "custom_metadata($self, /)\n--\n\n"},
    {"run", &entry<run>, METH_VARARGS, "run($self, feed, outputs, timeout_ms, cancel, bound, /)\n--\n\n"},
    {"report", &entry<report>, METH_NOARGS, "report($self, /)\n--\n\n"},
    {"write_trace", &entry<write_trace>, METH_VARARGS, "write_trace($self, path, /)\n--\n\n"},
    {"dump", &entry<dump>, METH_VARARGS, "dump($self, stage, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef cancel_methods[] = {{"cancel", &entry<cancel>, METH_NOARGS, "cancel($self, /)\n--\n\n"},
                                {"cancelled", &entry<cancelled>, METH_NOARGS, "cancelled($self, /)\n--\n\n"},
                                {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {
    {"open", &entry<open>, METH_VARARGS, "open($module, path, options, extras, /)\n--\n\n"},
    {"from_bytes", &entry<from_bytes>, METH_VARARGS, "from_bytes($module, model, options, folder, extras, /)\n--\n\n"},
    {"is_model", &entry<is_model>, METH_VARARGS, "is_model($module, path_or_bytes, /)\n--\n\n"},
    {"declared", &entry<declared>, METH_VARARGS, "declared($module, path_or_bytes, /)\n--\n\n"},
    {"with_places", &entry<with_places>, METH_VARARGS, "with_places($module, path, place, /)\n--\n\n"},
    {"cancel_token", &entry<cancel_token>, METH_NOARGS, "cancel_token($module, /)\n--\n\n"},
    {"providers", &entry<providers_to_python>, METH_NOARGS, "providers($module, /)\n--\n\n"},
    {"ort_name", &entry<ort_name>, METH_VARARGS, "ort_name($module, name, /)\n--\n\n"},
    {"ignored_cpu_options", &entry<ignored_cpu_options>, METH_NOARGS, "ignored_cpu_options($module, /)\n--\n\n"},
    {"pass_names", &entry<pass_names_to_python>, METH_NOARGS, "pass_names($module, /)\n--\n\n"},
    {"operators", &entry<operators>, METH_NOARGS, "operators($module, /)\n--\n\n"},
    {"version", &entry<version_to_python>, METH_NOARGS, "version($module, /)\n--\n\n"},
    {"faces", &entry<make_faces>, METH_NOARGS, "faces($module, /)\n--\n\n"},
    {"arrays", &entry<make_arrays>, METH_NOARGS, "arrays($module, /)\n--\n\n"},
    {"text", &entry<make_text>, METH_NOARGS, "text($module, /)\n--\n\n"},
    {"speech", &entry<make_speech>, METH_NOARGS, "speech($module, /)\n--\n\n"},
    {"quantize", &entry<make_quantize>, METH_NOARGS, "quantize($module, /)\n--\n\n"},
    {"training", &entry<make_training>, METH_NOARGS, "training($module, /)\n--\n\n"},
    {"set_seed", &entry<set_seed>, METH_VARARGS, "set_seed($module, seed, /)\n--\n\n"},
    {"survive_mapped_faults", &entry<survive_mapped_faults_from_python>, METH_NOARGS,
     "survive_mapped_faults($module, /)\n--\n\n"},
    {"check_mapped_files", &entry<check_mapped_files_from_python>, METH_NOARGS, "check_mapped_files($module, /)\n--\n\n"},
    {"queue_log", &entry<queue_log>, METH_VARARGS, "queue_log($module, on, /)\n--\n\n"},
    {"call_back", &entry<call_back>, METH_VARARGS, "call_back($module, callback, severity, message, /)\n--\n\n"},
    {"take_log", &entry<take_log>, METH_NOARGS, "take_log($module, /)\n--\n\n"},
    {"set_log_level", &entry<set_log_level>, METH_VARARGS, "set_log_level($module, level, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

Object make_module(PyObject*, PyObject*) {
  Object module = new_module<functions>("_sardonyx");
  add_class<Session>(module, "Session", "sardonyx._sardonyx.Session", session_methods);
  add_class<CancelToken>(module, "CancelToken", "sardonyx._sardonyx.CancelToken", cancel_methods);
  prepare_memory_type();
  session::read_ort_operators_with(&dropin::operators_of_library);
  session::quantize_with(&quantize::at_load);
  return module;
}

}  // namespace
}  // namespace sdx::python

PyMODINIT_FUNC PyInit__sardonyx() { return sdx::python::entry<sdx::python::make_module>(nullptr, nullptr); }
