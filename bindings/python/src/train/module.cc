#include "module.h"

#include "artifacts.h"
#include "autograd.h"
#include "checkpoint.h"
#include "step.h"

namespace sdx::python {

Object make_training(PyObject*, PyObject*) {
  const Object module = Object::taken(PyModule_New("sardonyx._sardonyx.training"));
  add_artifacts(module);
  add_checkpoints(module);
  add_steps(module);
  add_autograd(module);
  return module;
}

}  // namespace sdx::python
