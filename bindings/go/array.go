package sardonyx

/*
#include <stdlib.h>
#include <sdx/array.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Array is a multi-dimensional array, or the error that kept it from being made.
type Array struct {
	handle *C.sdx_array
	shape  []int
	dtype  Dtype
	err    error
}

// Takes the handle that `call` makes.
func adopt(call func(out **C.sdx_array) C.sdx_status) *Array {
	var handle *C.sdx_array
	if err := check(func() C.sdx_status { return call(&handle) }); err != nil {
		return &Array{err: err}
	}
	a := &Array{handle: handle, dtype: dtypeOf(C.sdx_array_dtype(handle))}
	rank := int(C.sdx_array_rank(handle))
	a.shape = make([]int, rank)
	for i, extent := range unsafe.Slice(C.sdx_array_shape(handle), rank) {
		a.shape[i] = int(extent)
	}
	runtime.SetFinalizer(a, (*Array).Free)
	return a
}

// The first error among the operands.
func problem(arrays ...*Array) error {
	for _, a := range arrays {
		if err := a.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Shape returns the extents, outermost first.
func (a *Array) Shape() []int { return append([]int{}, a.shape...) }

// Dtype returns the type of the elements.
func (a *Array) Dtype() Dtype { return a.dtype }

// Size returns the number of elements.
func (a *Array) Size() int {
	count := 1
	for _, extent := range a.shape {
		count *= extent
	}
	return count
}

// Err returns why the array could not be made; nil if it could.
func (a *Array) Err() error {
	switch {
	case a == nil:
		return fmt.Errorf("%w: a nil *Array", ErrInvalidInput)
	case a.err != nil:
		return a.err
	case a.handle == nil:
		return ErrFreed
	}
	return nil
}

// Free lets go of the array now, instead of when the garbage collector finds it. The array must not be in use elsewhere.
func (a *Array) Free() {
	if a == nil || a.handle == nil {
		return
	}
	runtime.SetFinalizer(a, nil)
	C.sdx_array_free(a.handle)
	a.handle = nil
}

// String shows type and shape, without computing.
func (a *Array) String() string {
	if err := a.Err(); err != nil {
		return fmt.Sprintf("Array(%v)", err)
	}
	return fmt.Sprintf("Array(%v, %v)", a.dtype, a.shape)
}

// Element is a Go type that an array's elements can be read as: the one that matches the Dtype, bit for bit. Float16 and BFloat16
// have none in Go: convert with AsType, or read them as uint16.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool | complex64
}

func elementType[T Element]() Dtype {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return UInt8
	case uint16:
		return UInt16
	case uint32:
		return UInt32
	case uint64:
		return UInt64
	case complex64:
		return Complex64
	}
	return Bool
}

// Data computes the array and returns a copy of its elements, row-major.
func Data[T Element](a *Array) ([]T, error) {
	if err := a.Err(); err != nil {
		return nil, err
	}
	want := elementType[T]()
	half := want == UInt16 && (a.dtype == Float16 || a.dtype == BFloat16)
	if want != a.dtype && !half {
		return nil, fmt.Errorf("%w: the elements are %v, not %v; convert with AsType", ErrInvalidInput, a.dtype, want)
	}
	var data unsafe.Pointer
	if err := check(func() C.sdx_status { return C.sdx_array_data(a.handle, &data) }); err != nil {
		return nil, err
	}
	out := make([]T, a.Size())
	if len(out) != 0 {
		copy(out, unsafe.Slice((*T)(data), len(out)))
	}
	runtime.KeepAlive(a)
	return out, nil
}

// Item computes an array of one element and returns it.
func Item[T Element](a *Array) (T, error) {
	var zero T
	if err := a.Err(); err != nil {
		return zero, err
	}
	if a.Size() != 1 {
		return zero, fmt.Errorf("%w: an array of shape %v does not have exactly one element", ErrInvalidInput, a.shape)
	}
	values, err := Data[T](a)
	if err != nil {
		return zero, err
	}
	return values[0], nil
}

// FromData makes an array of any element type from a copy of the values.
func FromData[T Element](values []T, shape []int) *Array {
	dtype := dtypes[elementType[T]()]
	_, at := extents(shape)
	var first unsafe.Pointer
	if len(values) != 0 {
		first = unsafe.Pointer(&values[0])
	}
	made := adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_from_data(dtype.number, at, C.size_t(len(shape)), first, C.size_t(len(values)*dtype.size), out)
	})
	runtime.KeepAlive(values)
	return made
}

func handles(arrays []*Array) ([]*C.sdx_array, error) {
	out := make([]*C.sdx_array, 0, len(arrays)+1)
	for _, a := range arrays {
		if err := a.Err(); err != nil {
			return nil, err
		}
		out = append(out, a.handle)
	}
	return append(out, nil), nil
}

// An array of handles where C may read it: Go's own memory must not hold pointers that cgo has not seen.
func withHandles(arrays []*Array, use func(first **C.sdx_array, count C.size_t) error) error {
	list, err := handles(arrays)
	if err != nil {
		return err
	}
	size := C.size_t(len(list)) * C.size_t(unsafe.Sizeof(list[0]))
	memory := (**C.sdx_array)(C.malloc(size))
	defer C.free(unsafe.Pointer(memory))
	copy(unsafe.Slice(memory, len(list)), list)
	err = use(memory, C.size_t(len(arrays)))
	runtime.KeepAlive(arrays)
	return err
}

// Eval computes the arrays, in one pass over what they have in common.
func Eval(arrays ...*Array) error {
	return withHandles(arrays, func(first **C.sdx_array, count C.size_t) error {
		return check(func() C.sdx_status { return C.sdx_array_eval(first, count) })
	})
}

// AsyncEval starts computing and returns; Data, Eval and Synchronize wait.
func AsyncEval(arrays ...*Array) error {
	return withHandles(arrays, func(first **C.sdx_array, count C.size_t) error {
		return check(func() C.sdx_status { return C.sdx_array_async_eval(first, count) })
	})
}
