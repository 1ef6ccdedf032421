// The compiled half of the Python package; sardonyx/*.py is the half that users see.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <sdx/sdx.hpp>

#include "arrays.h"
#include "base/log.h"
#include "ops/op.h"
#include "provider/provider.h"
#include "providers/cpu/cpu_provider.h"

namespace nb = nanobind;

namespace sdx::python {
namespace {

nb::object spec_to_python(const ValueSpec& spec) {
  nb::object shape = nb::none();
  if (spec.has_shape) {
    nb::list extents;
    for (std::size_t i = 0; i < spec.shape.size(); ++i) {
      if (spec.shape[i] >= 0) {
        extents.append(spec.shape[i]);
      } else if (!spec.symbols[i].empty()) {
        extents.append(spec.symbols[i]);
      } else {
        extents.append(nb::none());
      }
    }
    shape = extents;
  }
  return nb::make_tuple(spec.name, spec.type, shape, spec.has_default);
}

nb::list specs_to_python(const std::vector<ValueSpec>& specs) {
  nb::list out;
  for (const ValueSpec& s : specs) out.append(spec_to_python(s));
  return out;
}

// "sequence(float32[n])" holds float32: what an empty list is made of.
DataType innermost_type(const std::string& type) {
  const std::size_t open = type.find_last_of("( ");
  const std::size_t start = open == std::string::npos ? 0 : open + 1;
  return parse_data_type(type.substr(start, type.find_first_of("[)", start) - start));
}

bool is_container(const std::string& type) {
  return type.find("sequence(") != std::string::npos || type.find("map(") != std::string::npos;
}

NamedValues feed_to_values(const Session& session, nb::dict feed, Buffers& buffers) {
  NamedValues values;
  for (auto [key, object] : feed) {
    const auto name = nb::cast<std::string>(nb::str(key));
    Expected expected{name.c_str()};
    for (const ValueSpec& s : session.inputs()) {
      if (s.name != name) continue;
      expected.dtype = s.is_tensor ? s.dtype : innermost_type(s.type);
      expected.is_tensor = s.is_tensor || !is_container(s.type);
    }
    if (object.is_none() && expected.is_tensor && expected.dtype == DataType::undefined) continue;
    values.add(name, to_value(object, expected, buffers));
  }
  return values;
}

nb::list run(const Session& session, nb::dict feed, std::vector<std::string> outputs, std::optional<std::int64_t> timeout_ms,
             const CancelToken* cancel) {
  Buffers buffers;
  const NamedValues inputs = feed_to_values(session, feed, buffers);
  RunOptions options;
  options.outputs = std::move(outputs);
  if (timeout_ms) options.timeout = std::chrono::milliseconds(*timeout_ms);
  if (cancel != nullptr) options.cancel = *cancel;
  NamedValues results;
  {
    const nb::gil_scoped_release unlocked;
    results = session.run(inputs, options);
  }
  nb::list out;
  for (const NamedValue& v : results) out.append(to_python(v.value));
  return out;
}

nb::dict report_to_python(const Session& session) {
  Report r;
  {
    const nb::gil_scoped_release unlocked;
    r = session.report();
  }
  nb::list nodes;
  for (const NodeReport& n : r.nodes) {
    nb::dict d;
    d["name"] = n.name;
    d["op"] = n.op;
    d["provider"] = n.provider;
    d["kernel"] = n.kernel;
    d["refused"] = n.refused;
    d["timed_ms"] = n.timed;
    d["output"] = n.output;
    nodes.append(d);
  }
  nb::dict d;
  d["model"] = r.model;
  d["runtime"] = r.runtime;
  d["providers"] = r.providers;
  d["nodes"] = nodes;
  d["fallbacks"] = r.fallbacks;
  d["warnings"] = r.warnings;
  d["why"] = r.why;
  d["events"] = r.events;
  nb::list chains;
  for (const ChainReport& c : r.chains) {
    nb::dict chain;
    chain["providers"] = c.providers;
    chain["state"] = c.state;
    chain["runs"] = c.runs;
    chain["failures"] = c.failures;
    chains.append(chain);
  }
  d["chains"] = chains;
  nb::list measured;
  for (const MeasuredProvider& m : r.measured) {
    nb::dict entry;
    entry["provider"] = m.provider;
    entry["median_ms"] = m.median_ms;
    entry["compile_ms"] = m.compile_ms;
    entry["chosen"] = m.chosen;
    entry["note"] = m.note;
    measured.append(entry);
  }
  d["measured"] = measured;
  d["load_ms"] = r.load_ms;
  d["init_ms"] = r.init_ms;
  d["compiled"] = r.compiled;
  d["peak_bytes"] = r.peak_bytes;
  d["text"] = r.text();
  return d;
}

nb::list providers_to_python() {
  nb::list out;
  for (const ProviderInfo& p : sdx::providers()) {
    nb::dict d;
    d["name"] = p.name;
    d["ort_name"] = p.ort_name;
    d["hardware"] = p.hardware;
    d["available"] = p.available;
    d["reason"] = p.reason;
    d["hint"] = p.hint;
    d["version"] = p.version;
    d["devices"] = p.devices;
    out.append(d);
  }
  return out;
}

nb::list types_to_python(ops::TypeSet set) {
  nb::list out;
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if ((set & ops::bit(type)) != 0) out.append(std::string(name(type)));
  }
  if ((set & ops::types::sequence) != 0) out.append("sequence");
  if ((set & ops::types::optional) != 0) out.append("optional");
  if ((set & ops::types::map) != 0) out.append("map");
  return out;
}

nb::list formals_to_python(const std::vector<ops::Formal>& formals) {
  constexpr std::array kArities = {"required", "optional", "variadic"};
  nb::list out;
  for (const ops::Formal& f : formals) {
    out.append(nb::make_tuple(f.name, f.type_var, kArities[static_cast<std::size_t>(f.arity)], types_to_python(f.types)));
  }
  return out;
}

// The table of operators, for the tests that compare it with ONNX's own: a dict a definition.
nb::list operators_to_python() {
  nb::list out;
  for (const ops::OpDef& def : ops::table().all()) {
    nb::dict d;
    d["domain"] = def.domain;
    d["name"] = def.name;
    d["since"] = def.since;
    d["deprecated_at"] = def.deprecated_at;
    d["inputs"] = formals_to_python(def.inputs);
    d["outputs"] = formals_to_python(def.outputs);
    nb::list attributes;
    for (const ops::AttrDef& a : def.attributes) attributes.append(nb::make_tuple(a.name, a.required));
    d["attributes"] = attributes;
    out.append(d);
  }
  return out;
}

// Errors become the exception classes of sardonyx/_errors.py, which choose by the code's name.
void translate(const std::exception_ptr& raised, void*) {
  try {
    std::rethrow_exception(raised);
  } catch (const Error& e) {
    // Messages quote the model, whose names and attributes may be no text at all.
    const std::string_view text = e.what();
    const nb::object message =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    const nb::object made = nb::module_::import_("sardonyx._errors").attr("make")(std::string(name(e.code())), message);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

Session open(const std::string& path, const SessionOptions& options) {
  const nb::gil_scoped_release unlocked;
  return Session::open(path, options);
}

Session from_bytes(const nb::bytes& bytes, const SessionOptions& options, const std::string& folder) {
  const std::span<const std::byte> span(static_cast<const std::byte*>(bytes.data()), bytes.size());
  const nb::gil_scoped_release unlocked;
  return Session::from_bytes(span, options, folder);
}

void bind_options(nb::module_& m) {
  nb::class_<SessionOptions>(m, "SessionOptions")
      .def(nb::init<>())
      .def_rw("providers", &SessionOptions::providers)
      .def_rw("strict", &SessionOptions::strict)
      .def_rw("optimize", &SessionOptions::optimize)
      .def_rw("disabled_passes", &SessionOptions::disabled_passes)
      .def_rw("threads", &SessionOptions::threads)
      .def_rw("thread_affinity", &SessionOptions::thread_affinity)
      .def_rw("memory_limit", &SessionOptions::memory_limit)
      .def_rw("plan_cache_size", &SessionOptions::plan_cache_size)
      .def_rw("dimensions", &SessionOptions::dimensions)
      .def_rw("profile", &SessionOptions::profile)
      .def_rw("provider_options", &SessionOptions::provider_options)
      .def_rw("runtime", &SessionOptions::runtime)
      .def_rw("provider_priority", &SessionOptions::provider_priority)
      .def_rw("platform_defaults", &SessionOptions::platform_defaults)
      .def_rw("select", &SessionOptions::select)
      .def_rw("tune", &SessionOptions::tune)
      .def_rw("start_on", &SessionOptions::start_on)
      .def_prop_rw(
          "provider_timeout_ms", [](const SessionOptions& o) { return o.provider_timeout.count(); },
          [](SessionOptions& o, std::int64_t ms) { o.provider_timeout = std::chrono::milliseconds(ms); })
      .def_prop_rw(
          "provider_retry_ms", [](const SessionOptions& o) { return o.provider_retry.count(); },
          [](SessionOptions& o, std::int64_t ms) { o.provider_retry = std::chrono::milliseconds(ms); })
      .def_rw("reject_nan", &SessionOptions::reject_nan)
      .def_rw("keep_compiled", &SessionOptions::keep_compiled)
      .def_rw("telemetry", &SessionOptions::telemetry);
  nb::class_<CancelToken>(m, "CancelToken")
      .def(nb::init<>())
      .def("cancel", &CancelToken::cancel)
      .def("cancelled", &CancelToken::cancelled);
}

void bind_session(nb::module_& m) {
  nb::class_<Session>(m, "Session")
      .def_static("open", &open)
      .def_static("from_bytes", &from_bytes)
      .def("inputs", [](const Session& s) { return specs_to_python(s.inputs()); })
      .def("outputs", [](const Session& s) { return specs_to_python(s.outputs()); })
      .def("metadata", [](const Session& s) { return s.metadata(); })
      .def("run", &run, nb::arg("feed"), nb::arg("outputs"), nb::arg("timeout_ms").none(), nb::arg("cancel").none())
      .def("report", &report_to_python)
      .def("write_trace",
           [](const Session& s, const std::string& path) {
             const nb::gil_scoped_release unlocked;
             s.write_trace(path);
           })
      .def("dump", [](const Session& s, const std::string& stage) {
        const nb::gil_scoped_release unlocked;
        return s.dump(stage);
      });
}

}  // namespace
}  // namespace sdx::python

NB_MODULE(_sardonyx, m) {
  using namespace sdx::python;
  nb::set_leak_warnings(false);  // sessions may live as long as the interpreter
  nb::register_exception_translator(&translate);
  bind_options(m);
  bind_session(m);
  m.def("providers", &providers_to_python);
  // ONNX Runtime's name of a provider by any of its names; an intent ("gpu") as it is. Looks at nothing.
  m.def("ort_name", [](const std::string& name) {
    const std::string canonical = sdx::canonical_provider(name);
    const std::string plain = canonical.starts_with("ort:") ? canonical.substr(4) : canonical;
    for (const sdx::ProviderName& p : sdx::provider_names()) {
      if (p.name == plain) return p.ort_name;
    }
    return plain;
  });
  m.def("ignored_cpu_options", [] {
    nb::list out;
    for (const std::string_view name : sdx::cpu::ignored_options()) out.append(nb::str(name.data(), name.size()));
    return out;
  });
  m.def("pass_names", &sdx::pass_names);
  m.def("operators", &operators_to_python);
  m.def("version", [] { return std::string(sdx::version()); });
  m.def("set_log_level", [](int level) { sdx::log::set_level(static_cast<sdx::log::Level>(level)); });
}
