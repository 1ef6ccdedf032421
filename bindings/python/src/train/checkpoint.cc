// The compiled half of sardonyx.training: checkpoints.

#include "checkpoint.h"

#include <algorithm>
#include <cstring>

#include "../arrays.h"
#include "../entry.h"
#include "base/error.h"

namespace sdx::python {
namespace {

using train::CheckpointState;
using train::Parameter;

Object made(CheckpointState state) {
  auto shared = std::make_shared<SharedState>();
  static_cast<CheckpointState&>(*shared) = std::move(state);
  return instance_of(std::move(shared));
}

// Handles of the same tensors: later code reads them while other threads continue.
CheckpointState held(PyObject* self) {
  const HeldState state = state_of(self);
  return alone(*state, [&] { return static_cast<const CheckpointState&>(*state); });
}

// Calls read(state) while no other thread uses the state.
template <class Read>
auto of(PyObject* self, const Read& read) {
  const HeldState state = state_of(self);
  return alone(*state, [&] { return read(static_cast<CheckpointState&>(*state)); });
}

Object load(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string path = to_text(argument(arguments, 0));
  return made(unlocked([&] { return CheckpointState::load(path); }));
}

Object from_bytes(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(argument(arguments, 0), &data, &size));
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size));
  return made(unlocked([&] { return CheckpointState::load(bytes); }));
}

Object save(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string path = to_text(argument(arguments, 0));
  const bool optimizer = to_truth(argument(arguments, 1));
  of(self, [&](const CheckpointState& s) { s.save(path, optimizer); });
  return Object::none();
}

Object to_bytes(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const bool optimizer = to_truth(argument(arguments, 0));
  const std::vector<std::byte> bytes = of(self, [&](const CheckpointState& s) { return s.bytes(optimizer); });
  return Object::taken(
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size())));
}

// (name, type, shape, requires_grad) of each
Object parameters(PyObject* self, PyObject*) {
  return list_of(held(self).parameters, [](const Parameter& p) {
    return tuple(text(p.name), text(name(p.value.dtype())), list_of(p.value.shape(), [](std::int64_t d) { return number(d); }),
                 truth(p.requires_grad));
  });
}

Object has(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string called = to_text(argument(arguments, 0));
  return truth(of(self, [&](const CheckpointState& s) { return s.find(called) != nullptr; }));
}

void check_has_values(const CheckpointState& state) {
  if (state.nominal) fail(ErrorCode::invalid_argument, "this is a nominal checkpoint, which contains no values");
}

Object requires_grad(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string called = to_text(argument(arguments, 0));
  return truth(of(self, [&](const CheckpointState& s) { return s.at(called).requires_grad; }));
}

Object get(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string called = to_text(argument(arguments, 0));
  return to_python(of(self, [&](const CheckpointState& s) {
    check_has_values(s);
    return s.at(called).value.clone();
  }));
}

Tensor tensor_of(PyObject* object, const char* called, DataType dtype, Buffers& buffers) {
  const Value value = to_value(object, {called, dtype}, buffers);
  if (!value.is_tensor()) fail(ErrorCode::invalid_argument, "'{}': expected an array, received {}", called, value.type_string());
  return value.tensor();
}

// Writes into the existing memory, where the trainers of the state look.
Object assign(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string called = to_text(argument(arguments, 0));
  const DataType dtype = of(self, [&](const CheckpointState& s) {
    check_has_values(s);
    return s.at(called).value.dtype();
  });
  Buffers buffers;
  const Tensor from = tensor_of(argument(arguments, 1), called.c_str(), dtype, buffers);
  of(self, [&](CheckpointState& s) {
    Tensor& to = s.at(called).value;
    if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
      fail(ErrorCode::invalid_argument, "parameter '{}' is {}; received {}", called, to.type_string(), from.type_string());
    }
    if (to.bytes() != 0) std::memmove(to.mutable_data(), from.data(), to.bytes());
  });
  return Object::none();
}

Object property_names(PyObject* self, PyObject*) {
  return list_of(of(self, [](const CheckpointState& s) { return s.properties; }), [](const auto& p) { return text(p.first); });
}

Object get_property(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string called = to_text(argument(arguments, 0));
  const auto all = of(self, [](const CheckpointState& s) { return s.properties; });
  const auto at = all.find(called);
  if (at == all.end()) return Object::none();
  if (const auto* whole = std::get_if<std::int64_t>(&at->second)) return number(*whole);
  if (const auto* real = std::get_if<float>(&at->second)) return number(static_cast<double>(*real));
  return text(std::get<std::string>(at->second));
}

train::Property property_of(PyObject* object) {
  if (PyUnicode_Check(object) != 0) return to_text(object);
  if (PyLong_Check(object) != 0) return to_integer(object);
  if (PyFloat_Check(object) != 0) return static_cast<float>(to_double(object));
  PyErr_Format(PyExc_TypeError, "properties are int, float or str, received %R", object);
  throw Raised();
}

Object set_property(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string called = to_text(argument(arguments, 0));
  train::Property value = property_of(argument(arguments, 1));
  of(self, [&](CheckpointState& s) { s.properties[called] = std::move(value); });
  return Object::none();
}

// {group: (step, initial learning rate, {parameter: {moment: array}})}
Object optimizers(PyObject* self, PyObject*) {
  Object all = new_dict();
  const auto groups = of(self, [](const CheckpointState& s) { return s.clone().optimizers; });
  for (const auto& [name, group] : groups) {
    const Object moments = new_dict();
    for (const auto& [parameter, tensors] : group.moments) {
      const Object each = new_dict();
      for (const auto& [moment, value] : tensors) set(each, moment.c_str(), to_python(Tensor(value)));
      set(moments, parameter.c_str(), each);
    }
    set(all, name.c_str(), tuple(number(group.step), number(static_cast<double>(group.initial_learning_rate)), moments));
  }
  return all;
}

Object nominal(PyObject* self, PyObject*) {
  return truth(of(self, [](const CheckpointState& s) { return s.nominal; }));
}
Object clone(PyObject* self, PyObject*) {
  return made(of(self, [](const CheckpointState& s) { return s.clone(); }));
}

Object size(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const bool trainable_only = to_truth(argument(arguments, 0));
  return number(of(self, [&](const CheckpointState& s) { return s.size(trainable_only); }));
}

Object to_buffer(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const bool trainable_only = to_truth(argument(arguments, 0));
  return to_python(of(self, [&](const CheckpointState& s) { return s.to_buffer(trainable_only); }));
}

Object from_buffer(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  Buffers buffers;
  const Tensor from = tensor_of(argument(arguments, 0), "buffer", DataType::float32, buffers);
  const bool trainable_only = to_truth(argument(arguments, 1));
  of(self, [&](CheckpointState& s) { s.from_buffer(from, trainable_only); });
  return Object::none();
}

Object difference(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const CheckpointState a = held(argument(arguments, 0)), b = held(argument(arguments, 1));
  return made(unlocked([&] { return train::difference(a, b); }));
}

Object sum(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const CheckpointState base = held(argument(arguments, 0)), delta = held(argument(arguments, 1));
  const double factor = to_double(argument(arguments, 2));
  return made(unlocked([&] { return train::sum(base, delta, factor); }));
}

Object average(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::vector<CheckpointState> states =
      to_list(argument(arguments, 0), [](PyObject* o) -> CheckpointState { return held(o); });
  const std::vector<double> weights = to_list(argument(arguments, 1), to_double);
  return made(unlocked([&] { return train::average(states, weights); }));
}

PyMethodDef methods[] = {
    {"save", &entry<save>, METH_VARARGS, "save($self, path, include_optimizer_state, /)\n--\n\n"},
    {"to_bytes", &entry<to_bytes>, METH_VARARGS, "to_bytes($self, include_optimizer_state, /)\n--\n\n"},
    {"parameters", &entry<parameters>, METH_NOARGS, "parameters($self, /)\n--\n\n"},
    {"has", &entry<has>, METH_VARARGS, "has($self, name, /)\n--\n\n"},
    {"requires_grad", &entry<requires_grad>, METH_VARARGS, "requires_grad($self, name, /)\n--\n\n"},
    {"get", &entry<get>, METH_VARARGS, "get($self, name, /)\n--\n\n"},
    {"assign", &entry<assign>, METH_VARARGS, "assign($self, name, value, /)\n--\n\n"},
    {"property_names", &entry<property_names>, METH_NOARGS, "property_names($self, /)\n--\n\n"},
    {"get_property", &entry<get_property>, METH_VARARGS, "get_property($self, name, /)\n--\n\n"},
    {"set_property", &entry<set_property>, METH_VARARGS, "set_property($self, name, value, /)\n--\n\n"},
    {"optimizers", &entry<optimizers>, METH_NOARGS, "optimizers($self, /)\n--\n\n"},
    {"nominal", &entry<nominal>, METH_NOARGS, "nominal($self, /)\n--\n\n"},
    {"clone", &entry<clone>, METH_NOARGS, "clone($self, /)\n--\n\n"},
    {"size", &entry<size>, METH_VARARGS, "size($self, trainable_only, /)\n--\n\n"},
    {"to_buffer", &entry<to_buffer>, METH_VARARGS, "to_buffer($self, trainable_only, /)\n--\n\n"},
    {"from_buffer", &entry<from_buffer>, METH_VARARGS, "from_buffer($self, buffer, trainable_only, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"load", &entry<load>, METH_VARARGS, "load($module, path, /)\n--\n\n"},
                           {"from_bytes", &entry<from_bytes>, METH_VARARGS, "from_bytes($module, data, /)\n--\n\n"},
                           {"difference", &entry<difference>, METH_VARARGS, "difference($module, a, b, /)\n--\n\n"},
                           {"sum", &entry<sum>, METH_VARARGS, "sum($module, base, delta, factor, /)\n--\n\n"},
                           {"average", &entry<average>, METH_VARARGS, "average($module, states, weights, /)\n--\n\n"},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

const HeldState& state_of(PyObject* object) { return value_of<HeldState>(object); }

void add_checkpoints(const Object& module) {
  add_class<HeldState>(module, "CheckpointState", "sardonyx._sardonyx.CheckpointState", methods);
  check(PyModule_AddFunctions(module.get(), functions));
}

}  // namespace sdx::python
