// The compiled half of sardonyx.training: modules, optimisers, trainers.

#include "step.h"

#include <sdx/train/trainer.hpp>

#include "../arrays.h"
#include "../entry.h"
#include "checkpoint.h"
#include "train/step/rule.h"

namespace sdx::python {
namespace {

struct HeldModule {
  HeldState shared;
  std::shared_ptr<train::Module> module;
};
struct HeldOptimizer {
  HeldModule module;  // outlives what is below
  std::shared_ptr<train::Optimizer> optimizer;
};
struct HeldScheduler {
  HeldOptimizer optimizer;
  std::shared_ptr<train::LinearLRScheduler> scheduler;
};
struct HeldTrainer {
  HeldState shared;
  std::shared_ptr<train::Trainer> trainer;
};

std::string path_or_nothing(PyObject* object) { return object == Py_None ? std::string() : to_text(object); }

train::ModuleOptions module_options(PyObject* threads, PyObject* seed, PyObject* bfloat16) {
  train::ModuleOptions options;
  options.threads = to_int(threads);
  options.seed = static_cast<std::uint64_t>(to_integer(seed));
  options.bfloat16 = to_truth(bfloat16);
  return options;
}

// The batch as the engine reads it, by the names of the model's inputs.
std::vector<Tensor> inputs_of(PyObject* batch, const std::vector<std::string>& names, Buffers& buffers) {
  std::size_t at = 0;
  return to_list(batch, [&](PyObject* item) {
    const char* name = at < names.size() ? names[at].c_str() : "one too many";
    ++at;
    const Value value = to_value(item, {name}, buffers);
    if (!value.is_tensor())
      fail(ErrorCode::invalid_argument, "input '{}' must be an array, received {}", name, value.type_string());
    return value.tensor();
  });
}

Object arrays(std::vector<Tensor> tensors) {
  Object list = new_list();
  for (Tensor& t : tensors) append(list, to_python(Value(std::move(t))));
  return list;
}

// make_module(training model, state, eval model or None, threads, seed, bfloat16)
Object make_module(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 6);
  const std::string training = to_text(argument(arguments, 0)), eval = path_or_nothing(argument(arguments, 2));
  HeldModule made{state_of(argument(arguments, 1)), nullptr};
  const auto options = module_options(argument(arguments, 3), argument(arguments, 4), argument(arguments, 5));
  made.module = alone(*made.shared, [&] { return std::make_shared<train::Module>(training, *made.shared, eval, options); });
  return instance_of(std::move(made));
}

template <bool kEval>
Object module_step(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldModule m = value_of<HeldModule>(self);
  Buffers buffers;
  const std::vector<Tensor> inputs = inputs_of(argument(arguments, 0), m.module->input_names(kEval), buffers);
  return arrays(alone(*m.shared, [&] { return kEval ? m.module->eval_step(inputs) : m.module->train_step(inputs); }));
}

Object lazy_reset_grad(PyObject* self, PyObject*) {
  const HeldModule m = value_of<HeldModule>(self);
  alone(*m.shared, [&] { return m.module->lazy_reset_grad(), 0; });
  return Object::none();
}

// Returns None before the first step, and for parameters that are not trained.
Object gradient(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldModule m = value_of<HeldModule>(self);
  const std::string name = to_text(argument(arguments, 0));
  Tensor found = alone(*m.shared, [&] {
    if (!m.shared->at(name).requires_grad) return Tensor();
    const Tensor g = m.module->gradient(name);
    return g.defined() ? g.clone() : g;
  });
  return found.defined() ? to_python(Value(std::move(found))) : Object::none();
}

template <class Held, class Get>
Object export_model(PyObject* self, PyObject* arguments, const Get& get) {
  expect_arguments(arguments, 2);
  const Held held = value_of<Held>(self);
  const std::string path = to_text(argument(arguments, 0));
  const std::vector<std::string> outputs = to_list(argument(arguments, 1), to_text);
  alone(*held.shared, [&] { return get(held).export_model_for_inferencing(path, outputs), 0; });
  return Object::none();
}

Object module_export(PyObject* self, PyObject* arguments) {
  return export_model<HeldModule>(self, arguments, [](const HeldModule& m) -> train::Module& { return *m.module; });
}

Object module_inputs(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  return texts(value_of<HeldModule>(self).module->input_names(to_truth(argument(arguments, 0))));
}
Object module_outputs(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  return texts(value_of<HeldModule>(self).module->output_names(to_truth(argument(arguments, 0))));
}

// make_optimizer(optimizer model, module)
Object make_optimizer(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string path = to_text(argument(arguments, 0));
  HeldOptimizer made{value_of<HeldModule>(argument(arguments, 1)), nullptr};
  made.optimizer = alone(*made.module.shared,
                         [&] { return std::make_shared<train::Optimizer>(std::filesystem::path(path), *made.module.module); });
  return instance_of(std::move(made));
}

Object optimizer_step(PyObject* self, PyObject*) {
  const HeldOptimizer o = value_of<HeldOptimizer>(self);
  alone(*o.module.shared, [&] { return o.optimizer->step(), 0; });
  return Object::none();
}

Object set_rate(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldOptimizer o = value_of<HeldOptimizer>(self);
  const auto rate = static_cast<float>(to_double(argument(arguments, 0)));
  alone(*o.module.shared, [&] { return o.optimizer->set_learning_rate(rate), 0; });
  return Object::none();
}

Object rate(PyObject* self, PyObject*) {
  return number(static_cast<double>(value_of<HeldOptimizer>(self).optimizer->learning_rate()));
}

// make_scheduler(optimizer, warmup, total, initial rate)
Object make_scheduler(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  HeldScheduler made{value_of<HeldOptimizer>(argument(arguments, 0)), nullptr};
  made.scheduler = std::make_shared<train::LinearLRScheduler>(*made.optimizer.optimizer, to_integer(argument(arguments, 1)),
                                                              to_integer(argument(arguments, 2)),
                                                              static_cast<float>(to_double(argument(arguments, 3))));
  return instance_of(std::move(made));
}

Object scheduler_step(PyObject* self, PyObject*) {
  const HeldScheduler s = value_of<HeldScheduler>(self);
  alone(*s.optimizer.module.shared, [&] { return s.scheduler->step(), 0; });
  return Object::none();
}

// The named setting; borrowed, or null if it is missing.
PyObject* item(PyObject* settings, const char* name) {
  PyObject* found = PyDict_GetItemString(settings, name);
  return found == Py_None ? nullptr : found;
}

train::OptimizerOptions optimizer_options(PyObject* settings) {
  train::OptimizerOptions o;
  const auto real = [&](const char* name, float& value) {
    if (PyObject* x = item(settings, name)) value = static_cast<float>(to_double(x));
  };
  if (PyObject* x = item(settings, "kind")) o.kind = train::optimizer_named(to_text(x));
  real("beta1", o.beta1);
  real("beta2", o.beta2);
  real("epsilon", o.epsilon);
  real("weight_decay", o.weight_decay);
  real("momentum", o.momentum);
  real("dampening", o.dampening);
  real("alpha", o.alpha);
  real("initial_accumulator", o.initial_accumulator);
  real("clip_norm", o.clip_norm);
  if (PyObject* x = item(settings, "adam_mode")) o.adam_mode = to_integer(x);
  if (PyObject* x = item(settings, "correct_bias")) o.correct_bias = to_truth(x);
  if (PyObject* x = item(settings, "nesterov")) o.nesterov = to_truth(x);
  return o;
}

train::ScheduleKind schedule_named(const std::string& name) {
  if (name == "constant") return train::ScheduleKind::constant;
  if (name == "linear") return train::ScheduleKind::linear;
  if (name == "cosine") return train::ScheduleKind::cosine;
  fail(ErrorCode::invalid_argument, "'{}' is not a schedule; permitted: constant, linear, cosine", name);
}

// make_trainer(artifacts, state, optimizer: None, a model's path or a dict; settings: a dict)
Object make_trainer(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string artifacts = to_text(argument(arguments, 0));
  HeldTrainer made{state_of(argument(arguments, 1)), nullptr};
  PyObject* const optimizer = argument(arguments, 2);
  PyObject* const settings = argument(arguments, 3);
  train::TrainerOptions options;
  static_cast<train::ModuleOptions&>(options) =
      module_options(item(settings, "threads"), item(settings, "seed"), item(settings, "bfloat16"));
  if (PyDict_Check(optimizer) != 0) {
    options.optimizer = optimizer_options(optimizer);
  } else if (optimizer != Py_None) {
    options.optimizer = train::read_optimizer_model(to_text(optimizer));
  }
  options.learning_rate = static_cast<float>(to_double(item(settings, "learning_rate")));
  options.schedule = {schedule_named(to_text(item(settings, "schedule"))), to_integer(item(settings, "warmup")),
                      to_integer(item(settings, "total")), static_cast<float>(to_double(item(settings, "end")))};
  options.accumulate = to_integer(item(settings, "accumulate"));
  options.refuse_non_finite = to_truth(item(settings, "refuse_non_finite"));
  made.trainer = alone(*made.shared, [&] { return std::make_shared<train::Trainer>(artifacts, *made.shared, options); });
  return instance_of(std::move(made));
}

Object trainer_step(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldTrainer t = value_of<HeldTrainer>(self);
  Buffers buffers;
  const std::vector<Tensor> inputs = inputs_of(argument(arguments, 0), t.trainer->input_names(), buffers);
  return number(static_cast<double>(alone(*t.shared, [&] { return t.trainer->train_step(inputs); })));
}

Object trainer_eval(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldTrainer t = value_of<HeldTrainer>(self);
  Buffers buffers;
  const std::vector<Tensor> inputs = inputs_of(argument(arguments, 0), t.trainer->input_names(), buffers);
  return arrays(alone(*t.shared, [&] { return t.trainer->eval_step(inputs); }));
}

Object trainer_outputs(PyObject* self, PyObject*) {
  const HeldTrainer t = value_of<HeldTrainer>(self);
  return arrays(alone(*t.shared, [&] {
    std::vector<Tensor> copies;
    for (const Tensor& output : t.trainer->last_outputs()) copies.push_back(output.clone());
    return copies;
  }));
}

Object trainer_save(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldTrainer t = value_of<HeldTrainer>(self);
  const std::string path = to_text(argument(arguments, 0));
  alone(*t.shared, [&] { return t.trainer->save_checkpoint(path), 0; });
  return Object::none();
}

Object trainer_export(PyObject* self, PyObject* arguments) {
  return export_model<HeldTrainer>(self, arguments, [](const HeldTrainer& t) -> train::Trainer& { return *t.trainer; });
}

Object trainer_inputs(PyObject* self, PyObject*) { return texts(value_of<HeldTrainer>(self).trainer->input_names()); }
Object trainer_output_names(PyObject* self, PyObject*) { return texts(value_of<HeldTrainer>(self).trainer->output_names()); }
Object trainer_steps(PyObject* self, PyObject*) { return number(value_of<HeldTrainer>(self).trainer->steps()); }
Object trainer_rate(PyObject* self, PyObject*) {
  return number(static_cast<double>(value_of<HeldTrainer>(self).trainer->learning_rate()));
}
Object trainer_set_rate(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const HeldTrainer t = value_of<HeldTrainer>(self);
  const auto rate = static_cast<float>(to_double(argument(arguments, 0)));
  alone(*t.shared, [&] { return t.trainer->set_learning_rate(rate), 0; });
  return Object::none();
}

PyMethodDef module_methods[] = {{"train_step", &entry<module_step<false>>, METH_VARARGS, "train_step($self, inputs, /)\n--\n\n"},
                                {"eval_step", &entry<module_step<true>>, METH_VARARGS, "eval_step($self, inputs, /)\n--\n\n"},
                                {"lazy_reset_grad", &entry<lazy_reset_grad>, METH_NOARGS, "lazy_reset_grad($self, /)\n--\n\n"},
                                {"gradient", &entry<gradient>, METH_VARARGS, "gradient($self, name, /)\n--\n\n"},
                                {"export", &entry<module_export>, METH_VARARGS, "export($self, path, outputs, /)\n--\n\n"},
                                {"input_names", &entry<module_inputs>, METH_VARARGS, "input_names($self, eval, /)\n--\n\n"},
                                {"output_names", &entry<module_outputs>, METH_VARARGS, "output_names($self, eval, /)\n--\n\n"},
                                {nullptr, nullptr, 0, nullptr}};

PyMethodDef optimizer_methods[] = {
    {"step", &entry<optimizer_step>, METH_NOARGS, "step($self, /)\n--\n\n"},
    {"learning_rate", &entry<rate>, METH_NOARGS, "learning_rate($self, /)\n--\n\n"},
    {"set_learning_rate", &entry<set_rate>, METH_VARARGS, "set_learning_rate($self, rate, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef scheduler_methods[] = {{"step", &entry<scheduler_step>, METH_NOARGS, "step($self, /)\n--\n\n"},
                                   {nullptr, nullptr, 0, nullptr}};

PyMethodDef trainer_methods[] = {
    {"train_step", &entry<trainer_step>, METH_VARARGS, "train_step($self, inputs, /)\n--\n\n"},
    {"eval_step", &entry<trainer_eval>, METH_VARARGS, "eval_step($self, inputs, /)\n--\n\n"},
    {"last_outputs", &entry<trainer_outputs>, METH_NOARGS, "last_outputs($self, /)\n--\n\n"},
    {"save_checkpoint", &entry<trainer_save>, METH_VARARGS, "save_checkpoint($self, path, /)\n--\n\n"},
    {"export", &entry<trainer_export>, METH_VARARGS, "export($self, path, outputs, /)\n--\n\n"},
    {"input_names", &entry<trainer_inputs>, METH_NOARGS, "input_names($self, /)\n--\n\n"},
    {"output_names", &entry<trainer_output_names>, METH_NOARGS, "output_names($self, /)\n--\n\n"},
    {"steps", &entry<trainer_steps>, METH_NOARGS, "steps($self, /)\n--\n\n"},
    {"learning_rate", &entry<trainer_rate>, METH_NOARGS, "learning_rate($self, /)\n--\n\n"},
    {"set_learning_rate", &entry<trainer_set_rate>, METH_VARARGS, "set_learning_rate($self, rate, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {
    {"make_module", &entry<make_module>, METH_VARARGS,
     "make_module($module, training_model, state, eval_model, threads, seed, bfloat16, /)\n--\n\n"},
    {"make_optimizer", &entry<make_optimizer>, METH_VARARGS, "make_optimizer($module, optimizer_model, of, /)\n--\n\n"},
    {"make_scheduler", &entry<make_scheduler>, METH_VARARGS,
     "make_scheduler($module, optimizer, warmup, total, initial_rate, /)\n--\n\n"},
    {"make_trainer", &entry<make_trainer>, METH_VARARGS,
     "make_trainer($module, artifacts, state, optimizer, settings, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_steps(const Object& module) {
  add_class<HeldModule>(module, "Module", "sardonyx._sardonyx.Module", module_methods);
  add_class<HeldOptimizer>(module, "Optimizer", "sardonyx._sardonyx.Optimizer", optimizer_methods);
  add_class<HeldScheduler>(module, "LinearLRScheduler", "sardonyx._sardonyx.LinearLRScheduler", scheduler_methods);
  add_class<HeldTrainer>(module, "Trainer", "sardonyx._sardonyx.Trainer", trainer_methods);
  check(PyModule_AddFunctions(module.get(), functions));
}

}  // namespace sdx::python
