#include "opening.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sdx/session.hpp>
#include <span>
#include <string_view>

#include "array/callback.h"
#include "arrays.h"
#include "base/system/mapped_file.h"
#include "dropin/model_file.h"
#include "entry.h"
#include "onnx/ort/ort_model.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "options.h"
#include "session/open.h"

namespace sdx::python {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::string_view bytes_of(PyObject* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes, &data, &size));
  return {data, static_cast<std::size_t>(size)};
}

// use(bytes) of a model that is a file's path, or bytes.
template <class Use>
auto with_bytes(PyObject* source, const Use& use) {
  if (PyBytes_Check(source) != 0) return use(bytes_of(source));
  const auto file = MappedFile::open(to_text(source), 0);
  return use(text_of(file->bytes()));
}

Object declared_shape(const dropin::InputFacts& value) {
  if (!value.has_shape) return Object::none();
  const Object shape = new_list();
  for (std::size_t i = 0; i < value.extents.size(); ++i) {
    const std::string& name = value.extents[i].first;
    append(shape, value.numbers[i] >= 0 ? number(value.numbers[i]) : name.empty() ? Object::none() : text(name));
  }
  return shape;
}

// Options of a session that a dict of Python says beside those of the engine.
struct Internal {
  session::InternalOptions options;
  GivenData data;
};

// Arrays by name. The session has copies: programs may change theirs.
template <class Use>
void each_tensor(PyObject* arrays, const Use& use) {
  each_item(arrays, [&](const std::string& name, PyObject* array) {
    Buffers buffers;
    use(name, to_value(array, {name.c_str()}, buffers).tensor().clone());
  });
}

void add_files(PyObject* files, Internal& to) {
  each_item(files, [&](const std::string& name, PyObject* content) {
    to.data.files.emplace(name, OwnedBytes{std::as_bytes(std::span(bytes_of(content))), arrays::shared(content)});
  });
}

// Values of initializers whose data have to be in another file.
void add_external(PyObject* values, std::string_view model, Internal& to) {
  const std::map<std::string, bool, std::less<>> known = dropin::weights_of(model);
  each_tensor(values, [&](const std::string& name, Tensor tensor) {
    const auto at = known.find(name);
    if (at == known.end()) fail(ErrorCode::invalid_argument, "the model has no initializer '{}' with data in another file", name);
    if (!at->second) {
      fail(ErrorCode::invalid_argument, "initializer '{}' has its data in the model, not in another file", name);
    }
    to.data.tensors.insert_or_assign(name, std::move(tensor));
  });
}

void add_extents(PyObject* denotations, std::string_view model, Internal& to) {
  const std::optional<dropin::ModelFacts> facts = dropin::read_facts(model);
  if (!facts) return;
  each_item(denotations, [&](const std::string& denotation, PyObject* extent) {
    dropin::add_extents(*facts, denotation, to_integer(extent), to.options.extents);
  });
}

// `source`: the model's path, or its bytes.
void fill(PyObject* extras, PyObject* source, Internal& to) {
  if (extras == Py_None) return;
  each_item(extras, [&](const std::string& key, PyObject* value) {
    if (key == "initializers") {
      each_tensor(value, [&](const std::string& name, Tensor tensor) { to.data.tensors.emplace(name, std::move(tensor)); });
    } else if (key == "files") {
      add_files(value, to);
    } else if (key == "external") {
      with_bytes(source, [&](std::string_view model) { add_external(value, model, to); });
    } else if (key == "denotations") {
      with_bytes(source, [&](std::string_view model) { add_extents(value, model, to); });
    } else if (key == "data_file") {
      to.options.optimized_model.external_name = to_text(value);
      to.options.optimized_model.alignment = 64;
    } else {
      to.options.optimized_model.external_above = static_cast<std::size_t>(std::max<std::int64_t>(to_integer(value), 1));
    }
  });
  if (!to.data.files.empty() || !to.data.tensors.empty()) to.options.data = &to.data;
  to.options.initializers.assign(to.data.tensors.begin(), to.data.tensors.end());
}

Object open_source(const session::Source& source, PyObject* shown, const SessionOptions& options, PyObject* extras) {
  Internal internal;
  fill(extras, shown, internal);
  return instance_of(unlocked([&] { return session::open(source, options, internal.options); }));
}

// A constant that an array of NumPy shows with its own bytes.
bool is_plain(const Tensor& t) { return t.dtype() != DataType::string && !is_sub_byte(t.dtype()) && t.bytes() > 0; }

}  // namespace

Object is_model(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  return truth(with_bytes(argument(arguments, 0),
                          [](std::string_view bytes) { return is_ort_model(bytes) || dropin::read_facts(bytes).has_value(); }));
}

Object declared(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::optional<dropin::ModelFacts> facts = with_bytes(argument(arguments, 0), [](std::string_view bytes) {
    if (!is_ort_model(bytes)) return dropin::read_facts(bytes);
    auto found = dropin::read_facts(read_ort_model(std::as_bytes(std::span(bytes)), nullptr).proto);
    if (found) found->metadata.graph_name.clear();  // the format has none
    return found;
  });
  if (!facts) return Object::none();
  const auto& m = facts->metadata;
  const Object d = new_dict(), custom = new_dict(), shapes = new_dict();
  for (const auto& [key, value] : m.custom) check(PyDict_SetItem(custom.get(), text(key).get(), text(value).get()));
  for (const auto& [name, value] : facts->values)
    check(PyDict_SetItem(shapes.get(), text(name).get(), declared_shape(value).get()));
  set(d, "producer_name", text(m.producer));
  set(d, "producer_version", text(facts->producer_version));
  set(d, "domain", text(m.domain));
  set(d, "description", text(m.description));
  set(d, "version", number(m.version));
  set(d, "graph_name", text(m.graph_name));
  set(d, "graph_description", text(m.graph_description));
  set(d, "custom", custom);
  set(d, "shapes", shapes);
  return d;
}

Object open(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  PyObject* path = argument(arguments, 0);
  return open_source(std::filesystem::path(to_text(path)), path, to_options(argument(arguments, 1)), argument(arguments, 2));
}

Object from_bytes(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  PyObject* model = argument(arguments, 0);
  const session::ModelBytes source{std::as_bytes(std::span(bytes_of(model))), to_text(argument(arguments, 2))};
  return open_source(source, model, to_options(argument(arguments, 1)), argument(arguments, 3));
}

Object with_places(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string path = to_text(argument(arguments, 0));
  const Object place = Object::of(argument(arguments, 1));
  const Model model = unlocked([&] { return read_model(path); });
  std::map<const void*, FilePlace> places;
  for (const ValueInfo& value : model.graph.values()) {
    if (!value.constant || !is_plain(*value.constant)) continue;
    const Object found = place.call(text(value.name), to_python(*value.constant));
    if (found.is_none()) continue;
    const auto [location, offset] = to_pair(found.get(), to_text, to_integer);
    places.emplace(value.constant->data(), FilePlace{location, static_cast<std::uint64_t>(offset)});
  }
  const std::string bytes = unlocked([&] {
    return write_model(model, [&](const Tensor& t) {
      const auto at = places.find(t.data());
      return at == places.end() ? std::nullopt : std::optional(at->second);
    });
  });
  return Object::taken(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

}  // namespace sdx::python
