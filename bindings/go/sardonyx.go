// Package sardonyx computes with arrays and runs ONNX models, on the best hardware that a machine has.
//
// Arrays are immutable and lazy: an operation returns at once, and the numbers are computed when Eval, Data or Item asks for them.
// Operations keep their error in the array that they return, and hand on the errors of their operands: Array.Err says what went
// wrong first, Eval and Data return it. Arrays, sessions and tensors are freed by finalisers; Free does it at once.
//
// All functions may be called from any goroutine.
package sardonyx

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -lsdx_array -lsdx
#include <stdlib.h>
#include <sdx/array.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
)

// Version is the library's.
var Version = C.GoString(C.sdx_version())

// Errors that programs compare with errors.Is.
var (
	ErrNoGPU          = errors.New("no GPU available")
	ErrInvalidBackend = errors.New("invalid backend")
	ErrInvalidModel   = errors.New("invalid model")
	ErrInvalidInput   = errors.New("invalid argument")
	ErrUnavailable    = errors.New("provider unavailable")
	ErrOutOfMemory    = errors.New("out of memory")
	ErrFreed          = errors.New("used after Free")
)

// Error is what the library reports.
type Error struct {
	Status  int    // sdx_status
	Message string // what, where, expected, received, how to mend
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, ErrOutOfMemory) and the like work.
func (e *Error) Is(target error) bool {
	switch C.sdx_status(e.Status) {
	case C.SDX_INVALID_MODEL:
		return target == ErrInvalidModel
	case C.SDX_INVALID_ARGUMENT:
		return target == ErrInvalidInput
	case C.SDX_PROVIDER_UNAVAILABLE:
		return target == ErrUnavailable
	case C.SDX_OUT_OF_MEMORY:
		return target == ErrOutOfMemory
	}
	return false
}

// The message is kept per thread: the call and the look at it stay on one.
func check(call func() C.sdx_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := call()
	if status == C.SDX_OK {
		return nil
	}
	message := C.GoString(C.sdx_last_error())
	if message == "" {
		message = C.GoString(C.sdx_status_name(status))
	}
	return &Error{Status: int(status), Message: message}
}

// Dtype is the type of an array's elements.
type Dtype int

const (
	Float32 Dtype = iota
	Float64
	Int32
	Int64
	Bool
	Float16
	BFloat16
	Int8
	Int16
	UInt8
	UInt16
	UInt32
	UInt64
	Complex64
)

var dtypes = []struct {
	number C.sdx_dtype // ONNX's
	size   int
	name   string
}{
	Float32: {1, 4, "float32"}, Float64: {11, 8, "float64"}, Int32: {6, 4, "int32"}, Int64: {7, 8, "int64"},
	Bool: {9, 1, "bool"}, Float16: {10, 2, "float16"}, BFloat16: {16, 2, "bfloat16"}, Int8: {3, 1, "int8"},
	Int16: {5, 2, "int16"}, UInt8: {2, 1, "uint8"}, UInt16: {4, 2, "uint16"}, UInt32: {12, 4, "uint32"},
	UInt64: {13, 8, "uint64"}, Complex64: {14, 8, "complex64"},
}

func (d Dtype) known() bool { return d >= 0 && int(d) < len(dtypes) }

func (d Dtype) String() string {
	if !d.known() {
		return fmt.Sprintf("Dtype(%d)", int(d))
	}
	return dtypes[d].name
}

func (d Dtype) number() (C.sdx_dtype, error) {
	if !d.known() {
		return 0, fmt.Errorf("%w: %v is not an element type", ErrInvalidInput, d)
	}
	return dtypes[d].number, nil
}

func dtypeOf(number C.sdx_dtype) Dtype {
	for d, t := range dtypes {
		if t.number == number {
			return Dtype(d)
		}
	}
	return -1
}

// What cgo wants in place of a pointer to no element at all.
func extents(shape []int) ([]C.int64_t, *C.int64_t) {
	out := make([]C.int64_t, len(shape)+1)
	for i, extent := range shape {
		out[i] = C.int64_t(extent)
	}
	return out, &out[0]
}
