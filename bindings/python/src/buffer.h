#pragma once
// Python's buffer interface. It joined the limited interface with Python 3.11. Python 3.9 and 3.10 have the same functions and
// the same layout, but their headers, and those of later versions when asked for 3.9's interface, do not say so.

#include "object.h"

#if Py_LIMITED_API < 0x030B0000
extern "C" {
struct Py_buffer {  // NOLINT: Python's names
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};
int PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
int PyBuffer_FillInfo(Py_buffer* view, PyObject* object, void* data, Py_ssize_t size, int readonly, int flags);
void PyBuffer_Release(Py_buffer* view);
}
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#endif
