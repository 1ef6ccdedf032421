#pragma once
// Models as sessions open them, and what files say of themselves.

#include "object.h"

namespace sdx::python {

// open(path, options, extras), from_bytes(model, options, folder of external data, extras). `extras`: None, or what
// sardonyx/_options.py has beside the engine's options (SessionOptions._extras).
Object open(PyObject* self, PyObject* arguments);
Object from_bytes(PyObject* self, PyObject* arguments);

// is_model(path or bytes): whether they are a model of any sort. ONNX Runtime distinguishes bytes that are no model from models
// that break a rule.
Object is_model(PyObject* self, PyObject* arguments);

// declared(path or bytes): a file's metadata, and the shapes of its inputs and outputs as declared; None if it is no model.
Object declared(PyObject* self, PyObject* arguments);

// with_places(path, place): the model's bytes, with references to other files in place of the initializers for which
// place(name, array) returns where their data are (location, offset), not None.
Object with_places(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
