package sardonyx

/*
#include <stdlib.h>
#include <sdx/array.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Backend is what computes.
type Backend int

const (
	CPU    Backend = iota // our own engine
	Metal                 // Apple's GPUs and neural engine, by Core ML
	CUDA                  // NVIDIA's GPUs
	WebGPU                // any vendor's GPU, by WebGPU
	ONNX                  // ONNX Runtime's library
	Auto                  // the best that the machine has, in the order Metal, CUDA, CPU
)

var backendNames = []string{"CPU", "Metal", "CUDA", "WebGPU", "ONNX", "Auto"}

func (b Backend) String() string {
	if b < 0 || int(b) >= len(backendNames) {
		return "Unknown"
	}
	return backendNames[b]
}

// Device is what the backend computes on.
type Device struct {
	Type   Backend
	ID     int
	Name   string
	Memory int64 // bytes
}

type backendInfo struct {
	backend              Backend
	device, version, why string
	memory               int64
}

func currentBackend() (backendInfo, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var raw C.sdx_backend
	if err := check(func() C.sdx_status { return C.sdx_array_backend(&raw) }); err != nil {
		return backendInfo{}, err
	}
	info := backendInfo{backend: CPU, device: C.GoString(raw.device), version: C.GoString(raw.version),
		why: C.GoString(raw.why), memory: int64(raw.memory)}
	for i, name := range backendNames {
		if strings.EqualFold(name, C.GoString(raw.backend)) {
			info.backend = Backend(i)
		}
	}
	return info, nil
}

// SetBackend chooses what computes from now on. ErrNoGPU: the machine has none that this backend can use; the error says why.
func SetBackend(backend Backend) error {
	if backend < CPU || backend > Auto {
		return ErrInvalidBackend
	}
	name := C.CString(strings.ToLower(backend.String()))
	defer C.free(unsafe.Pointer(name))
	err := check(func() C.sdx_status { return C.sdx_array_set_backend(name) })
	if errors.Is(err, ErrUnavailable) && (backend == Metal || backend == CUDA || backend == WebGPU) {
		return fmt.Errorf("%w: %v", ErrNoGPU, err)
	}
	return err
}

// GetBackend returns what computes.
func GetBackend() Backend {
	info, err := currentBackend()
	if err != nil {
		return CPU
	}
	return info.backend
}

// GetDevice returns the device that computes; nil if the backend of the environment cannot be used.
func GetDevice() *Device {
	info, err := currentBackend()
	if err != nil {
		return nil
	}
	return &Device{Type: info.backend, Name: info.device, Memory: info.memory}
}

// Info says which backend, device and version compute, and why no other does.
func Info() string {
	info, err := currentBackend()
	if err != nil {
		return fmt.Sprintf("Sardonyx %s: %v", Version, err)
	}
	text := fmt.Sprintf("Sardonyx %s, backend %v (version %s) on %s", Version, info.backend, info.version, info.device)
	if info.why != "" {
		text += "; " + info.why
	}
	return text
}

// Stream is a queue: what is put into one stream is computed in order, several run at once.
type Stream struct{ index C.int }

// NewStream makes a stream; nil if there cannot be one more.
func NewStream() *Stream {
	s := &Stream{}
	if err := check(func() C.sdx_status { return C.sdx_array_new_stream(&s.index) }); err != nil {
		return nil
	}
	return s
}

// With runs `fn` with operations going to this stream.
func (s *Stream) With(fn func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := check(func() C.sdx_status { return C.sdx_array_set_stream(s.index) }); err != nil {
		return err
	}
	defer C.sdx_array_set_stream(0)
	fn()
	return nil
}

// Synchronize waits until all that was put into the stream is computed.
func (s *Stream) Synchronize() error {
	return check(func() C.sdx_status { return C.sdx_array_synchronize(s.index) })
}

// Synchronize waits until all that was put into the default stream is computed.
func Synchronize() error { return check(func() C.sdx_status { return C.sdx_array_synchronize(-1) }) }

// InitCPU chooses the CPU, InitCUDA an NVIDIA GPU.
func InitCPU() error  { return SetBackend(CPU) }
func InitCUDA() error { return SetBackend(CUDA) }

// Context has the package's functions as methods, and remembers what it made, so that Close frees all of it.
type Context struct {
	mu   sync.Mutex
	made []*Array
}

// DefaultContext is a context for those who want one; unlike others it remembers nothing.
var DefaultContext = &Context{}

// NewContext makes a context.
func NewContext() *Context { return &Context{} }

func (c *Context) keep(a *Array) *Array {
	if c != DefaultContext {
		c.mu.Lock()
		c.made = append(c.made, a)
		c.mu.Unlock()
	}
	return a
}

func (c *Context) SetBackend(backend Backend) error { return SetBackend(backend) }
func (c *Context) GetBackend() Backend              { return GetBackend() }
func (c *Context) GetDevice() *Device               { return GetDevice() }
func (c *Context) Info() string                     { return Info() }

func (c *Context) Zeros(shape []int, dtype Dtype) *Array  { return c.keep(Zeros(shape, dtype)) }
func (c *Context) Ones(shape []int, dtype Dtype) *Array   { return c.keep(Ones(shape, dtype)) }
func (c *Context) Random(shape []int, dtype Dtype) *Array { return c.keep(Random(shape, dtype)) }
func (c *Context) Arange(start, stop, step float64) *Array {
	return c.keep(Arange(start, stop, step))
}
func (c *Context) FromSlice(data []float32, shape []int, dtype Dtype) *Array {
	return c.keep(FromSlice(data, shape, dtype))
}
func (c *Context) Add(a, b *Array) *Array            { return c.keep(Add(a, b)) }
func (c *Context) Multiply(a, b *Array) *Array       { return c.keep(Multiply(a, b)) }
func (c *Context) Maximum(a, b *Array) *Array        { return c.keep(Maximum(a, b)) }
func (c *Context) MatMul(a, b *Array) *Array         { return c.keep(MatMul(a, b)) }
func (c *Context) Sum(a *Array, axis ...int) *Array  { return c.keep(Sum(a, axis...)) }
func (c *Context) Mean(a *Array, axis ...int) *Array { return c.keep(Mean(a, axis...)) }
func (c *Context) Eval(arrays ...*Array) error       { return Eval(arrays...) }
func (c *Context) Synchronize() error                { return Synchronize() }
func (c *Context) NewStream() *Stream                { return NewStream() }
func (c *Context) Free(a *Array)                     { a.Free() }

// FreeStream does nothing: a stream without work costs nothing.
func (c *Context) FreeStream(*Stream) {}

// Close frees all arrays that the context made.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.made {
		a.Free()
	}
	c.made = nil
}
