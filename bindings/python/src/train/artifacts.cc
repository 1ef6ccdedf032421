// The compiled half of sardonyx.training.artifacts.

#include "artifacts.h"

#include <sdx/train/artifacts.hpp>
#include <utility>
#include <vector>

#include "../arrays.h"
#include "../entry.h"
#include "base/error.h"
#include "checkpoint.h"

namespace sdx::python {
namespace {

using train::ArtifactFiles;
using train::ArtifactOptions;

float to_float(PyObject* o) { return static_cast<float>(to_double(o)); }

void set_optimizer(train::OptimizerOptions& o, const std::string& name, PyObject* value) {
  const std::pair<const char*, float*> floats[] = {{"beta1", &o.beta1},        {"beta2", &o.beta2},
                                                   {"epsilon", &o.epsilon},    {"weight_decay", &o.weight_decay},
                                                   {"momentum", &o.momentum},  {"dampening", &o.dampening},
                                                   {"alpha", &o.alpha},        {"initial_accumulator", &o.initial_accumulator},
                                                   {"clip_norm", &o.clip_norm}};
  for (const auto& [known, place] : floats) {
    if (name != known) continue;
    *place = to_float(value);
    return;
  }
  if (name == "kind") return void(o.kind = train::optimizer_named(to_text(value)));
  if (name == "adam_mode") return void(o.adam_mode = to_integer(value));
  if (name == "correct_bias") return void(o.correct_bias = to_truth(value));
  if (name == "nesterov") return void(o.nesterov = to_truth(value));
  fail(ErrorCode::invalid_argument, "an optimizer has no setting '{}'", name);
}

void set_lora(train::LoraOptions& o, const std::string& name, PyObject* value) {
  if (name == "rank") return void(o.rank = to_integer(value));
  if (name == "alpha") return void(o.alpha = to_float(value));
  if (name == "targets") return void(o.targets = to_list(value, to_text));
  fail(ErrorCode::invalid_argument, "LoRA has no setting '{}'", name);
}

void set_option(ArtifactOptions& o, const std::string& name, PyObject* value) {
  const std::pair<const char*, std::vector<std::string>*> lists[] = {{"requires_grad", &o.requires_grad},
                                                                     {"frozen", &o.frozen},
                                                                     {"loss_input_names", &o.loss_input_names},
                                                                     {"additional_outputs", &o.additional_outputs},
                                                                     {"recompute", &o.recompute}};
  for (const auto& [known, place] : lists) {
    if (name != known) continue;
    *place = to_list(value, to_text);
    return;
  }
  if (name == "loss") return void(o.loss = train::loss_named(to_text(value)));
  if (name == "loss_input") return void(o.loss_input = to_text(value));
  if (name == "target_name") return void(o.target_name = to_text(value));
  if (name == "prefix") return void(o.prefix = to_text(value));
  if (name == "nominal_checkpoint") return void(o.nominal_checkpoint = to_truth(value));
  if (name == "train_batch_norm") return void(o.train_batch_norm = to_truth(value));
  if (name == "shares_parameters") return void(o.shares_parameters = to_truth(value));
  if (name == "head_classes") return void(o.head_classes = to_integer(value));
  if (name == "seed") return void(o.seed = static_cast<std::uint64_t>(to_integer(value)));
  if (name == "custom_ops") {
    for (const std::string& path : to_list(value, to_text)) o.custom_ops.emplace_back(path);
    return;
  }
  if (name == "optimizer") {
    o.optimizer.reset();
    if (value == Py_None) return;
    o.optimizer.emplace();
    return each_item(value, [&](const std::string& key, PyObject* v) { set_optimizer(*o.optimizer, key, v); });
  }
  if (name == "lora") {
    o.lora.emplace();
    return each_item(value, [&](const std::string& key, PyObject* v) { set_lora(*o.lora, key, v); });
  }
  fail(ErrorCode::invalid_argument, "artifacts have no option '{}'", name);
}

// (a path or the bytes of a model, folder, options) -> the files' paths, "" where one is not written
Object generate(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  PyObject* const model = argument(arguments, 0);
  const std::string folder = to_text(argument(arguments, 1));
  ArtifactOptions options;
  each_item(argument(arguments, 2), [&](const std::string& name, PyObject* value) { set_option(options, name, value); });
  ArtifactFiles files;
  if (PyBytes_Check(model) != 0) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    check(PyBytes_AsStringAndSize(model, &data, &size));
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size));
    files = unlocked([&] { return train::generate_artifacts(bytes, folder, options); });
  } else {
    const std::filesystem::path path = to_text(model);
    files = unlocked([&] { return train::generate_artifacts(path, folder, options); });
  }
  return tuple(text(files.training_model.string()), text(files.eval_model.string()), text(files.optimizer_model.string()),
               text(files.checkpoint.string()), text(files.nominal_checkpoint.string()));
}

// ([(name, array, requires_grad)], path, nominal)
Object write_checkpoint(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  train::CheckpointState state;
  Buffers buffers;
  to_list(argument(arguments, 0), [&](PyObject* item) {
    const Object name = Object::taken(PySequence_GetItem(item, 0)), array = Object::taken(PySequence_GetItem(item, 1)),
                 trained = Object::taken(PySequence_GetItem(item, 2));
    const std::string called = to_text(name.get());
    const Value value = to_value(array.get(), {called.c_str(), DataType::undefined}, buffers);
    if (!value.is_tensor()) fail(ErrorCode::invalid_argument, "'{}': expected an array", called);
    state.parameters.push_back({called, value.tensor(), to_truth(trained.get())});
    return 0;
  });
  const std::string path = to_text(argument(arguments, 1));
  state.nominal = to_truth(argument(arguments, 2));
  unlocked([&] { state.save(path); });
  return Object::none();
}

PyMethodDef functions[] = {
    {"generate_artifacts", &entry<generate>, METH_VARARGS, "generate_artifacts($module, model, folder, options, /)\n--\n\n"},
    {"write_checkpoint", &entry<write_checkpoint>, METH_VARARGS,
     "write_checkpoint($module, parameters, path, nominal, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_artifacts(const Object& module) { check(PyModule_AddFunctions(module.get(), functions)); }

}  // namespace sdx::python
