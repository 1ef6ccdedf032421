// The compiled half of sardonyx.torch: models between a forward and a backward pass of PyTorch's.

#include "autograd.h"

#include <map>
#include <memory>
#include <mutex>

#include "../array/dlpack.h"
#include "../entry.h"
#include "../signals.h"
#include "base/error.h"
#include "checkpoint.h"
#include "onnx/reader.h"
#include "train/autograd/autograd_model.h"

namespace sdx::python {
namespace {

using train::AutogradModel;

// What a forward run keeps. PyTorch saves a token that holds it, and frees it with the token.
struct Token {
  std::int64_t id = 0;
  std::shared_ptr<const AutogradModel::Kept> kept;
  std::vector<Tensor> inputs;
};

struct State {
  explicit State(Model source) : model(std::move(source)), fixed(model.inputs().size()) {}

  AutogradModel model;
  std::vector<bool> booleans;  // by input: PyTorch hands them over as bytes
  std::vector<Tensor> fixed;   // by input: its value until it is set again
  std::mutex mutex;
  std::int64_t next = 1;
  std::map<std::int64_t, std::weak_ptr<const Token>> tokens;
};
using HeldModel = std::shared_ptr<State>;

Tensor same_bytes(const Tensor& t, DataType as) {
  return Tensor::view_mutable(const_cast<void*>(t.data()), as, t.shape(), std::const_pointer_cast<void>(t.owner()));
}

Tensor taken(PyObject* capsule, bool boolean) {
  Tensor t = arrays::tensor_of(arrays::from_dlpack(capsule, std::nullopt));
  return boolean && t.dtype() == DataType::uint8 ? same_bytes(t, DataType::boolean) : t;
}

// Truths as bytes: PyTorch takes no others.
Object given_away(Tensor t) {
  if (!t.defined()) return Object::none();
  if (t.dtype() == DataType::boolean) t = same_bytes(t, DataType::uint8);
  return arrays::to_dlpack(arrays::mx::array(std::move(t)), false, false);
}

std::span<const std::byte> bytes_of(PyObject* object) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(object, &data, &size));
  return {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

Object open(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::span<const std::byte> bytes = bytes_of(argument(arguments, 0));
  return instance_of(unlocked([&] {
    Model model = read_model(bytes, nullptr, {});
    std::vector<bool> booleans;
    for (const ValueId v : model.graph.inputs()) booleans.push_back(model.graph.value(v).declared.elem == DataType::boolean);
    auto state = std::make_shared<State>(std::move(model));
    state->booleans = std::move(booleans);
    return state;
  }));
}

Object inputs(PyObject* self, PyObject*) { return texts(value_of<HeldModel>(self)->model.inputs()); }
Object outputs(PyObject* self, PyObject*) { return texts(value_of<HeldModel>(self)->model.outputs()); }
Object updates(PyObject* self, PyObject*) {
  return list_of(value_of<HeldModel>(self)->model.updates(), [](std::size_t i) { return whole(i); });
}
Object random(PyObject* self, PyObject*) { return truth(value_of<HeldModel>(self)->model.random()); }
Object programs(PyObject* self, PyObject*) { return whole(value_of<HeldModel>(self)->model.programs()); }

// fix(number of an input, capsule)
Object fix(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  State& s = *value_of<HeldModel>(self);
  const auto i = static_cast<std::size_t>(to_integer(argument(arguments, 0)));
  if (i >= s.fixed.size()) fail(ErrorCode::invalid_argument, "the model has {} inputs; there is no number {}", s.fixed.size(), i);
  s.fixed[i] = taken(argument(arguments, 1), s.booleans[i]);
  return Object::none();
}

std::vector<Tensor> given_inputs(const State& s, PyObject* list) {
  std::vector<Tensor> out = s.fixed;
  if (PyList_Size(list) != static_cast<Py_ssize_t>(out.size())) {
    fail(ErrorCode::invalid_argument, "the model takes {} inputs, received {}", out.size(), PyList_Size(list));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    PyObject* item = PyList_GetItem(list, static_cast<Py_ssize_t>(i));
    if (item != Py_None) out[i] = taken(item, s.booleans[i]);
    if (!out[i].defined()) fail(ErrorCode::invalid_argument, "input '{}' is missing", s.model.inputs()[i]);
  }
  return out;
}

std::shared_ptr<const Token> keep(State& s, std::shared_ptr<const AutogradModel::Kept> kept, std::vector<Tensor> inputs) {
  const std::lock_guard lock(s.mutex);
  std::erase_if(s.tokens, [](const auto& t) { return t.second.expired(); });
  auto token = std::make_shared<Token>(Token{s.next++, std::move(kept), std::move(inputs)});
  s.tokens[token->id] = token;
  return token;
}

// forward(a capsule or None for each input, bytes: 1 if a gradient will be wanted, seed) returns the outputs as capsules (after
// the model's own, those that replace statistics), None or a token, and the numbers of the inputs and outputs that must not
// change.
Object forward(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const HeldModel held = value_of<HeldModel>(self);
  std::vector<Tensor> in = given_inputs(*held, argument(arguments, 0));
  char* flags = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(argument(arguments, 1), &flags, &size));
  const std::vector<bool> wanted(flags, flags + size);
  const auto seed = static_cast<std::uint64_t>(to_integer(argument(arguments, 2)));
  std::shared_ptr<const AutogradModel::Kept> kept;
  std::vector<Tensor> out = interruptible([&] { return held->model.forward(in, wanted, seed, &kept); });
  const Object results = list_of(out, [](const Tensor& t) { return given_away(t); });
  if (!kept) return tuple(results, Object::none(), new_list(), new_list());
  const auto numbers = [](const std::vector<std::size_t>& list) { return list_of(list, [](std::size_t i) { return whole(i); }); };
  const Object reads_inputs = numbers(AutogradModel::reads_inputs(*kept)),
               reads_outputs = numbers(AutogradModel::reads_outputs(*kept));
  const auto token = keep(*held, std::move(kept), std::move(in));
  const Tensor id = Tensor::view(&token->id, DataType::int64, {1}, token);
  return tuple(results, given_away(id), reads_inputs, reads_outputs);
}

// backward(the token's number, the gradients of floating-point outputs as capsules) gives a capsule or None by input.
Object backward(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const HeldModel held = value_of<HeldModel>(self);
  const std::int64_t id = to_integer(argument(arguments, 0));
  std::shared_ptr<const Token> token;
  {
    const std::lock_guard lock(held->mutex);
    if (const auto it = held->tokens.find(id); it != held->tokens.end()) token = it->second.lock();
  }
  if (!token) fail(ErrorCode::invalid_argument, "the values that the backward pass needs have already been released");
  const std::vector<Tensor> gradients = to_list(argument(arguments, 1), [](PyObject* c) { return taken(c, false); });
  const std::vector<Tensor> out = interruptible([&] { return held->model.backward(*token->kept, token->inputs, gradients); });
  return list_of(out, [](const Tensor& t) { return given_away(t); });
}

// names_in(a model's bytes): its initializers, its outputs
Object names_in(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::span<const std::byte> bytes = bytes_of(argument(arguments, 0));
  const Model model = unlocked([&] { return read_model(bytes, nullptr, {}); });
  std::vector<std::string> initializers;
  for (const ValueInfo& v : model.graph.values()) {
    if (v.constant) initializers.push_back(v.name);
  }
  return tuple(texts(initializers), texts(model.graph.output_names()));
}

// adopt(a CheckpointState, the name of a parameter, capsule) makes the tensor in the capsule the parameter. Training changes it
// in place.
Object adopt(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const HeldState state = state_of(argument(arguments, 0));
  const std::string name = to_text(argument(arguments, 1));
  const Tensor t = taken(argument(arguments, 2), false);
  return truth(alone(*state, [&] {
    train::Parameter* const p = state->find(name);
    if (p == nullptr) return false;
    if (p->value.dtype() != t.dtype() || p->value.shape() != t.shape()) {
      fail(ErrorCode::invalid_argument, "parameter '{}' is {}, received {}", name, p->value.type_string(), t.type_string());
    }
    p->value = same_bytes(t, t.dtype());
    return true;
  }));
}

}  // namespace

void add_autograd(const Object& module) {
  static PyMethodDef methods[] = {{"inputs", &entry<inputs>, METH_NOARGS, nullptr},
                                  {"outputs", &entry<outputs>, METH_NOARGS, nullptr},
                                  {"updates", &entry<updates>, METH_NOARGS, nullptr},
                                  {"random", &entry<random>, METH_NOARGS, nullptr},
                                  {"programs", &entry<programs>, METH_NOARGS, nullptr},
                                  {"fix", &entry<fix>, METH_VARARGS, nullptr},
                                  {"forward", &entry<forward>, METH_VARARGS, nullptr},
                                  {"backward", &entry<backward>, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  add_class<HeldModel>(module, "AutogradModel", "sardonyx._sardonyx.training.AutogradModel", methods);
  static PyMethodDef functions[] = {{"autograd_model", &entry<open>, METH_VARARGS, nullptr},
                                    {"names_in", &entry<names_in>, METH_VARARGS, nullptr},
                                    {"adopt", &entry<adopt>, METH_VARARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
  check(PyModule_AddFunctions(module.get(), functions));
}

}  // namespace sdx::python
