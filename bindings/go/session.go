package sardonyx

/*
#include <stdlib.h>
#include <sdx/array.h>
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"
)

// Tensor is an input or output of a model.
type Tensor struct {
	handle *C.sdx_tensor
}

func adoptTensor(handle *C.sdx_tensor) *Tensor {
	t := &Tensor{handle: handle}
	runtime.SetFinalizer(t, (*Tensor).Free)
	return t
}

// NewTensor makes a tensor from a copy of the values, which the shape must hold exactly.
func NewTensor[T Element](values []T, shape ...int) (*Tensor, error) {
	dtype := dtypes[elementType[T]()]
	_, at := extents(shape)
	var first unsafe.Pointer
	if len(values) != 0 {
		first = unsafe.Pointer(&values[0])
	}
	var handle *C.sdx_tensor
	err := check(func() C.sdx_status {
		return C.sdx_tensor_create(dtype.number, at, C.size_t(len(shape)), first, C.size_t(len(values)*dtype.size), &handle)
	})
	runtime.KeepAlive(values)
	if err != nil {
		return nil, err
	}
	return adoptTensor(handle), nil
}

// NewStrings makes a tensor of strings.
func NewStrings(values []string, shape ...int) (*Tensor, error) {
	count := C.size_t(len(values) + 1)
	memory := (**C.char)(C.malloc(count * C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(memory))
	texts := unsafe.Slice(memory, len(values))
	for i, v := range values {
		texts[i] = C.CString(v)
	}
	defer func() {
		for _, text := range texts {
			C.free(unsafe.Pointer(text))
		}
	}()
	want := 1
	for _, extent := range shape {
		want *= extent
	}
	if want != len(values) {
		return nil, fmt.Errorf("%w: %d strings for shape %v", ErrInvalidInput, len(values), shape)
	}
	_, at := extents(shape)
	var handle *C.sdx_tensor
	err := check(func() C.sdx_status { return C.sdx_tensor_create_strings(memory, at, C.size_t(len(shape)), &handle) })
	if err != nil {
		return nil, err
	}
	return adoptTensor(handle), nil
}

// Free lets go of the tensor now.
func (t *Tensor) Free() {
	if t == nil || t.handle == nil {
		return
	}
	runtime.SetFinalizer(t, nil)
	C.sdx_tensor_free(t.handle)
	t.handle = nil
}

// Shape returns the extents; nil after Free.
func (t *Tensor) Shape() []int {
	if t == nil || t.handle == nil {
		return nil
	}
	shape := make([]int, int(C.sdx_tensor_rank(t.handle)))
	for i, extent := range unsafe.Slice(C.sdx_tensor_shape(t.handle), len(shape)) {
		shape[i] = int(extent)
	}
	return shape
}

// TensorData returns a copy of the elements, row-major.
func TensorData[T Element](t *Tensor) ([]T, error) {
	if t == nil || t.handle == nil {
		return nil, ErrFreed
	}
	number := C.sdx_tensor_dtype(t.handle)
	if want := dtypes[elementType[T]()]; want.number != number {
		return nil, fmt.Errorf("%w: the elements are %v, not %s", ErrInvalidInput, dtypeOf(number), want.name)
	}
	out := make([]T, int(C.sdx_tensor_count(t.handle)))
	if len(out) != 0 {
		copy(out, unsafe.Slice((*T)(C.sdx_tensor_data(t.handle)), len(out)))
	}
	runtime.KeepAlive(t)
	return out, nil
}

// Strings returns the elements of a tensor of strings.
func (t *Tensor) Strings() ([]string, error) {
	if t == nil || t.handle == nil {
		return nil, ErrFreed
	}
	out := make([]string, int(C.sdx_tensor_count(t.handle)))
	for i := range out {
		text := C.sdx_tensor_string(t.handle, C.size_t(i))
		if text == nil {
			return nil, fmt.Errorf("%w: the elements are not strings", ErrInvalidInput)
		}
		out[i] = C.GoString(text)
	}
	runtime.KeepAlive(t)
	return out, nil
}

// Options of a session, by their names (docs/options.md): "threads": "2", "memory_limit": "512MB". Providers is the chain, in order
// of preference; empty: automatic.
type Options struct {
	Providers []string
	Set       map[string]string
	Strict    bool // nothing may run elsewhere than on the first provider
}

func (o Options) make() (*C.sdx_options, error) {
	options := C.sdx_options_create()
	fail := func(err error) (*C.sdx_options, error) {
		C.sdx_options_free(options)
		return nil, err
	}
	for _, provider := range o.Providers {
		text := C.CString(provider)
		err := check(func() C.sdx_status { return C.sdx_options_add_provider(options, text) })
		C.free(unsafe.Pointer(text))
		if err != nil {
			return fail(err)
		}
	}
	for name, value := range o.Set {
		key, text := C.CString(name), C.CString(value)
		err := check(func() C.sdx_status { return C.sdx_options_set(options, key, text) })
		C.free(unsafe.Pointer(key))
		C.free(unsafe.Pointer(text))
		if err != nil {
			return fail(err)
		}
	}
	if o.Strict {
		if err := check(func() C.sdx_status { return C.sdx_options_set_strict(options, 1) }); err != nil {
			return fail(err)
		}
	}
	return options, nil
}

// Session is a model that is ready to run. Any number of goroutines may run it at once.
type Session struct {
	handle  *C.sdx_session
	inputs  []string
	outputs []string
}

func adoptSession(options []Options, open func(o *C.sdx_options, out **C.sdx_session) C.sdx_status) (*Session, error) {
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	made, err := o.make()
	if err != nil {
		return nil, err
	}
	defer C.sdx_options_free(made)
	s := &Session{}
	if err := check(func() C.sdx_status { return open(made, &s.handle) }); err != nil {
		return nil, err
	}
	for i := C.size_t(0); i < C.sdx_session_input_count(s.handle); i++ {
		s.inputs = append(s.inputs, C.GoString(C.sdx_session_input_name(s.handle, i)))
	}
	for i := C.size_t(0); i < C.sdx_session_output_count(s.handle); i++ {
		s.outputs = append(s.outputs, C.GoString(C.sdx_session_output_name(s.handle, i)))
	}
	runtime.SetFinalizer(s, (*Session).Free)
	return s, nil
}

// Open opens an ONNX model.
func Open(path string, options ...Options) (*Session, error) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	return adoptSession(options, func(o *C.sdx_options, out **C.sdx_session) C.sdx_status {
		return C.sdx_session_open(text, o, out)
	})
}

// OpenBytes opens an ONNX model that lies in memory.
func OpenBytes(model []byte, options ...Options) (*Session, error) {
	memory := C.CBytes(model)
	defer C.free(memory)
	return adoptSession(options, func(o *C.sdx_options, out **C.sdx_session) C.sdx_status {
		return C.sdx_session_from_bytes(memory, C.size_t(len(model)), o, out)
	})
}

// Free closes the session now. It must not be running.
func (s *Session) Free() {
	if s == nil || s.handle == nil {
		return
	}
	runtime.SetFinalizer(s, nil)
	C.sdx_session_free(s.handle)
	s.handle = nil
}

// Inputs returns the names of the inputs, in the model's order.
func (s *Session) Inputs() []string { return append([]string(nil), s.inputs...) }

// Outputs returns the names of the outputs, in the model's order.
func (s *Session) Outputs() []string { return append([]string(nil), s.outputs...) }

// InputShape returns the extents that the model declares, -1 where one is open; nil without a known rank.
func (s *Session) InputShape(index int) ([]int, Dtype) {
	var shape [64]C.int64_t
	var rank C.int64_t
	number := C.sdx_session_input_type(s.handle, C.size_t(index), &shape[0], C.size_t(len(shape)), &rank)
	runtime.KeepAlive(s)
	if rank < 0 {
		return nil, dtypeOf(number)
	}
	out := make([]int, int(rank))
	for i := range out {
		out[i] = int(shape[i])
	}
	return out, dtypeOf(number)
}

// Report says what ran where.
func (s *Session) Report() string {
	defer runtime.KeepAlive(s)
	return C.GoString(C.sdx_session_report(s.handle))
}

// Run runs the model and returns the outputs of these names; none: all.
func (s *Session) Run(inputs map[string]*Tensor, outputs ...string) (map[string]*Tensor, error) {
	return s.RunContext(context.Background(), inputs, outputs...)
}

// RunContext is Run that ends when the context does.
func (s *Session) RunContext(ctx context.Context, inputs map[string]*Tensor, outputs ...string) (map[string]*Tensor, error) {
	if s == nil || s.handle == nil {
		return nil, ErrFreed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(outputs) == 0 {
		outputs = s.outputs
	}
	call := newCall(inputs, outputs)
	defer call.free()
	if call.err != nil {
		return nil, call.err
	}
	cancel := C.sdx_cancel_create()
	finished := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			C.sdx_cancel_now(cancel)
		case <-finished:
		}
		close(watched)
	}()
	err := check(func() C.sdx_status {
		return C.sdx_session_run(s.handle, call.names, call.inputs, C.size_t(len(inputs)), call.wanted, C.size_t(len(outputs)),
			call.outputs, 0, cancel)
	})
	close(finished)
	<-watched
	C.sdx_cancel_free(cancel)
	runtime.KeepAlive(inputs)
	runtime.KeepAlive(s)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	results := make(map[string]*Tensor, len(outputs))
	for i, handle := range unsafe.Slice(call.outputs, len(outputs)) {
		results[outputs[i]] = adoptTensor(handle)
	}
	return results, nil
}

// The arguments of one run, in memory that C may read.
type runCall struct {
	names, wanted **C.char
	inputs        **C.sdx_tensor
	outputs       **C.sdx_tensor
	texts         []unsafe.Pointer
	err           error
}

func pointers(count int) unsafe.Pointer {
	return C.calloc(C.size_t(count+1), C.size_t(unsafe.Sizeof(uintptr(0))))
}

func newCall(inputs map[string]*Tensor, outputs []string) *runCall {
	c := &runCall{
		names: (**C.char)(pointers(len(inputs))), wanted: (**C.char)(pointers(len(outputs))),
		inputs: (**C.sdx_tensor)(pointers(len(inputs))), outputs: (**C.sdx_tensor)(pointers(len(outputs))),
	}
	text := func(s string) *C.char {
		made := C.CString(s)
		c.texts = append(c.texts, unsafe.Pointer(made))
		return made
	}
	i := 0
	for name, tensor := range inputs {
		if tensor == nil || tensor.handle == nil {
			c.err = fmt.Errorf("input '%s': %w", name, ErrFreed)
			return c
		}
		unsafe.Slice(c.names, len(inputs))[i] = text(name)
		unsafe.Slice(c.inputs, len(inputs))[i] = tensor.handle
		i++
	}
	for i, name := range outputs {
		unsafe.Slice(c.wanted, len(outputs))[i] = text(name)
	}
	return c
}

func (c *runCall) free() {
	for _, text := range c.texts {
		C.free(text)
	}
	for _, memory := range []unsafe.Pointer{unsafe.Pointer(c.names), unsafe.Pointer(c.wanted), unsafe.Pointer(c.inputs),
		unsafe.Pointer(c.outputs)} {
		C.free(memory)
	}
}
