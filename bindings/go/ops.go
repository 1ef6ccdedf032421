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

// Full makes an array whose elements are all `value`.
func Full(shape []int, value float64, dtype Dtype) *Array {
	number, err := dtype.number()
	if err != nil {
		return &Array{err: err}
	}
	_, at := extents(shape)
	return adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_full(number, at, C.size_t(len(shape)), C.double(value), out)
	})
}

// Zeros makes an array of zeros.
func Zeros(shape []int, dtype Dtype) *Array { return Full(shape, 0, dtype) }

// Ones makes an array of ones.
func Ones(shape []int, dtype Dtype) *Array { return Full(shape, 1, dtype) }

func random(name string, shape []int, a, b float64, dtype Dtype) *Array {
	number, err := dtype.number()
	if err != nil {
		return &Array{err: err}
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	_, at := extents(shape)
	return adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_random(text, number, at, C.size_t(len(shape)), C.double(a), C.double(b), out)
	})
}

// Random makes random numbers: from 0 to 1, which is left out; of an integer type or Bool, 0 or 1.
func Random(shape []int, dtype Dtype) *Array {
	switch dtype {
	case Float32, Float64, Float16, BFloat16:
		return random("uniform", shape, 0, 1, dtype)
	}
	return random("randint", shape, 0, 2, dtype)
}

// Uniform makes random numbers from low to high, which is left out.
func Uniform(low, high float64, shape []int, dtype Dtype) *Array {
	return random("uniform", shape, low, high, dtype)
}

// Normal makes normally distributed random numbers.
func Normal(mean, deviation float64, shape []int, dtype Dtype) *Array {
	return random("normal", shape, mean, deviation, dtype)
}

// Seed sets the state from which random numbers are made.
func Seed(seed uint64) error {
	return check(func() C.sdx_status { return C.sdx_array_seed(C.uint64_t(seed)) })
}

// Arange makes start, start+step, … before stop, in float32.
func Arange(start, stop, step float64) *Array {
	return adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_arange(dtypes[Float32].number, C.double(start), C.double(stop), C.double(step), out)
	})
}

// FromSlice makes an array from a copy of the values, converted to `dtype`.
func FromSlice(data []float32, shape []int, dtype Dtype) *Array {
	return AsType(FromData(data, shape), dtype)
}

func binary(name string, a, b *Array) *Array {
	if err := problem(a, b); err != nil {
		return &Array{err: err}
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	made := adopt(func(out **C.sdx_array) C.sdx_status { return C.sdx_array_binary(text, a.handle, b.handle, out) })
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return made
}

// An operation on one array.
func on(a *Array, call func(out **C.sdx_array) C.sdx_status) *Array {
	if err := problem(a); err != nil {
		return &Array{err: err}
	}
	made := adopt(call)
	runtime.KeepAlive(a)
	return made
}

// Binary applies an operation on two arrays, by the name that mlx.core has: "subtract", "less", "logaddexp", …
func Binary(name string, a, b *Array) *Array { return binary(name, a, b) }

// Unary applies an operation on one array, by the name that mlx.core has: "exp", "tanh", "isnan", …
func Unary(name string, a *Array) *Array {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return on(a, func(out **C.sdx_array) C.sdx_status { return C.sdx_array_unary(text, a.handle, out) })
}

// Add returns a + b. Operands broadcast.
func Add(a, b *Array) *Array { return binary("add", a, b) }

// Subtract returns a - b.
func Subtract(a, b *Array) *Array { return binary("subtract", a, b) }

// Multiply returns a * b, element by element.
func Multiply(a, b *Array) *Array { return binary("multiply", a, b) }

// Divide returns a / b.
func Divide(a, b *Array) *Array { return binary("divide", a, b) }

// Maximum returns the larger of each two elements.
func Maximum(a, b *Array) *Array { return binary("maximum", a, b) }

// Minimum returns the smaller of each two elements.
func Minimum(a, b *Array) *Array { return binary("minimum", a, b) }

// MatMul returns the matrix product, over the last two axes.
func MatMul(a, b *Array) *Array { return binary("matmul", a, b) }

// Reduce reduces over axes (none: all) by the name that mlx.core has: "sum", "max", "var", …
func Reduce(name string, a *Array, keep bool, axis ...int) *Array {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	axes, at := axesOf(axis)
	flag := C.int(0)
	if keep {
		flag = 1
	}
	made := on(a, func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_reduce(text, a.handle, at, C.size_t(len(axis)), flag, out)
	})
	runtime.KeepAlive(axes)
	return made
}

func axesOf(axis []int) ([]C.int, *C.int) {
	if len(axis) == 0 {
		return nil, nil
	}
	axes := make([]C.int, len(axis))
	for i, v := range axis {
		axes[i] = C.int(v)
	}
	return axes, &axes[0]
}

// Sum adds up over the axes; none: all.
func Sum(a *Array, axis ...int) *Array { return Reduce("sum", a, false, axis...) }

// Mean averages over the axes; none: all.
func Mean(a *Array, axis ...int) *Array { return Reduce("mean", a, false, axis...) }

// AsType converts the elements.
func AsType(a *Array, dtype Dtype) *Array {
	number, err := dtype.number()
	if err != nil {
		return &Array{err: err}
	}
	return on(a, func(out **C.sdx_array) C.sdx_status { return C.sdx_array_astype(a.handle, number, out) })
}

// Reshape gives the elements another shape; one extent may be -1: what is left.
func Reshape(a *Array, shape ...int) *Array {
	_, at := extents(shape)
	return on(a, func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_reshape(a.handle, at, C.size_t(len(shape)), out)
	})
}

// Transpose reorders the axes; none: reverses them.
func Transpose(a *Array, axis ...int) *Array {
	axes, at := axesOf(axis)
	made := on(a, func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_transpose(a.handle, at, C.size_t(len(axis)), out)
	})
	runtime.KeepAlive(axes)
	return made
}

// Where takes elements of a where the condition holds, else of b.
func Where(condition, a, b *Array) *Array {
	if err := problem(condition, a, b); err != nil {
		return &Array{err: err}
	}
	made := adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_where(condition.handle, a.handle, b.handle, out)
	})
	runtime.KeepAlive([]*Array{condition, a, b})
	return made
}

// Concatenate puts arrays one after the other along an axis.
func Concatenate(arrays []*Array, axis int) *Array {
	var made *Array
	err := withHandles(arrays, func(first **C.sdx_array, count C.size_t) error {
		made = adopt(func(out **C.sdx_array) C.sdx_status { return C.sdx_array_concatenate(first, count, C.int(axis), out) })
		return nil
	})
	if err != nil {
		return &Array{err: err}
	}
	return made
}

// Slice takes start[i], start[i]+step[i], … before stop[i] along each axis; a nil step means ones.
func Slice(a *Array, start, stop, step []int) *Array {
	if step == nil {
		step = make([]int, len(start))
		for i := range step {
			step[i] = 1
		}
	}
	if len(start) != len(stop) || len(start) != len(step) {
		return &Array{err: fmt.Errorf("%w: Slice got %d starts, %d stops, %d steps", ErrInvalidInput, len(start), len(stop), len(step))}
	}
	_, from := extents(start)
	_, to := extents(stop)
	_, by := extents(step)
	return on(a, func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_slice(a.handle, from, to, by, C.size_t(len(start)), out)
	})
}

// Take takes the elements with these indices along an axis.
func Take(a, indices *Array, axis int) *Array {
	if err := problem(a, indices); err != nil {
		return &Array{err: err}
	}
	made := adopt(func(out **C.sdx_array) C.sdx_status {
		return C.sdx_array_take(a.handle, indices.handle, C.int(axis), out)
	})
	runtime.KeepAlive([]*Array{a, indices})
	return made
}
