package sardonyx

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func floats(t *testing.T, a *Array) []float32 {
	t.Helper()
	values, err := Data[float32](a)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func expect(t *testing.T, a *Array, shape []int, want ...float32) {
	t.Helper()
	if got := floats(t, a); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if !reflect.DeepEqual(a.Shape(), shape) {
		t.Fatalf("got shape %v, want %v", a.Shape(), shape)
	}
}

func TestCreation(t *testing.T) {
	expect(t, Zeros([]int{2, 3}, Float32), []int{2, 3}, 0, 0, 0, 0, 0, 0)
	expect(t, Ones([]int{3}, Float32), []int{3}, 1, 1, 1)
	expect(t, Arange(0, 5, 2), []int{3}, 0, 2, 4)
	expect(t, FromSlice([]float32{1, 2, 3, 4}, []int{2, 2}, Float32), []int{2, 2}, 1, 2, 3, 4)
	whole, err := Data[int64](FromSlice([]float32{1.5, -2}, []int{2}, Int64))
	if err != nil || !reflect.DeepEqual(whole, []int64{1, -2}) {
		t.Fatal(whole, err)
	}
	for _, dtype := range []Dtype{Float32, Float64, Int32, Int64, Bool, Float16, BFloat16, UInt8} {
		if a := Random([]int{4, 5}, dtype); a.Err() != nil || a.Dtype() != dtype || a.Size() != 20 {
			t.Fatal(dtype, a)
		}
	}
	for _, v := range floats(t, Random([]int{1000}, Float32)) {
		if v < 0 || v >= 1 {
			t.Fatal(v)
		}
	}
}

func TestArithmetic(t *testing.T) {
	a := FromSlice([]float32{1, 2, 3, 4}, []int{2, 2}, Float32)
	b := FromSlice([]float32{4, 3, 2, 1}, []int{2, 2}, Float32)
	expect(t, Add(a, b), []int{2, 2}, 5, 5, 5, 5)
	expect(t, Multiply(a, b), []int{2, 2}, 4, 6, 6, 4)
	expect(t, Maximum(a, b), []int{2, 2}, 4, 3, 3, 4)
	expect(t, MatMul(a, b), []int{2, 2}, 8, 5, 20, 13)
	expect(t, Sum(a), []int{}, 10)
	expect(t, Sum(a, 0), []int{2}, 4, 6)
	expect(t, Sum(a, -1), []int{2}, 3, 7)
	expect(t, Sum(a, 0, 1), []int{}, 10)
	expect(t, Mean(a, 1), []int{2}, 1.5, 3.5)
	expect(t, Reduce("max", a, true, 1), []int{2, 1}, 2, 4)
	expect(t, Transpose(a), []int{2, 2}, 1, 3, 2, 4)
	expect(t, Reshape(a, -1), []int{4}, 1, 2, 3, 4)
	expect(t, Concatenate([]*Array{a, b}, 1), []int{2, 4}, 1, 2, 4, 3, 3, 4, 2, 1)
	expect(t, Slice(a, []int{0, 1}, []int{2, 2}, nil), []int{2, 1}, 2, 4)
	expect(t, Take(a, FromData([]int32{1, 0}, []int{2}), 0), []int{2, 2}, 3, 4, 1, 2)
	expect(t, Where(Binary("less", a, b), a, b), []int{2, 2}, 1, 2, 2, 1)
	expect(t, Unary("negative", a), []int{2, 2}, -1, -2, -3, -4)
	value, err := Item[float32](Sum(a))
	if err != nil || value != 10 {
		t.Fatal(value, err)
	}
}

func TestErrorsAreValues(t *testing.T) {
	a := Ones([]int{2, 3}, Float32)
	bad := Add(a, Ones([]int{4}, Float32))
	if bad.Err() == nil || !errors.Is(bad.Err(), ErrInvalidInput) {
		t.Fatal(bad.Err())
	}
	for _, part := range []string{"add", "[2,3]", "[4]"} {
		if !strings.Contains(bad.Err().Error(), part) {
			t.Errorf("%q does not say %q", bad.Err(), part)
		}
	}
	// What is computed from it has the same error, and so has its data.
	if got := Sum(Multiply(a, bad)).Err(); got != bad.Err() {
		t.Fatal(got)
	}
	if _, err := Data[float32](bad); err != bad.Err() {
		t.Fatal(err)
	}
	if err := Eval(a, bad); err != bad.Err() {
		t.Fatal(err)
	}
	if _, err := Data[int32](a); !errors.Is(err, ErrInvalidInput) {
		t.Fatal(err)
	}
	if err := Unary("negativ", a).Err(); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Fatal(err)
	}
	if FromSlice([]float32{1}, []int{2}, Float32).Err() == nil || Zeros([]int{-1}, Float32).Err() == nil {
		t.Fatal("a shape that cannot be")
	}
	if err := Add(nil, a).Err(); err == nil {
		t.Fatal("nil")
	}
	freed := Ones([]int{1}, Float32)
	freed.Free()
	freed.Free()
	if err := Add(freed, a).Err(); !errors.Is(err, ErrFreed) {
		t.Fatal(err)
	}
	if Zeros([]int{1}, Dtype(99)).Err() == nil {
		t.Fatal("unknown type")
	}
}

func TestBackends(t *testing.T) {
	was := GetBackend()
	defer SetBackend(was)
	if err := SetBackend(CPU); err != nil || GetBackend() != CPU {
		t.Fatal(err)
	}
	device := GetDevice()
	if device == nil || device.Type != CPU || device.Name == "" || device.Memory <= 0 {
		t.Fatal(device)
	}
	if info := Info(); !strings.Contains(info, "CPU") || !strings.Contains(info, Version) {
		t.Fatal(info)
	}
	if err := SetBackend(Backend(77)); !errors.Is(err, ErrInvalidBackend) {
		t.Fatal(err)
	}
	if err := SetBackend(Metal); runtime.GOOS != "darwin" && !errors.Is(err, ErrNoGPU) {
		t.Fatal(err)
	}
	if GetBackend() != CPU {
		t.Fatal("a backend that cannot be used was taken")
	}
}

func TestStreams(t *testing.T) {
	first, second := NewStream(), NewStream()
	if first == nil || second == nil {
		t.Fatal("no stream")
	}
	var a, b *Array
	if err := first.With(func() { a = Sum(Ones([]int{1000}, Float32)) }); err != nil {
		t.Fatal(err)
	}
	if err := second.With(func() { b = Sum(Ones([]int{500}, Float32)) }); err != nil {
		t.Fatal(err)
	}
	if err := AsyncEval(a, b); err != nil {
		t.Fatal(err)
	}
	if err := first.Synchronize(); err != nil {
		t.Fatal(err)
	}
	expect(t, Add(a, b), []int{}, 1500)
	if err := Synchronize(); err != nil {
		t.Fatal(err)
	}
}

func TestManyGoroutines(t *testing.T) {
	shared := Arange(0, 100, 1)
	var group sync.WaitGroup
	for g := 0; g < 8; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 200; i++ {
				if value, err := Item[float32](Sum(Multiply(shared, shared))); err != nil || value != 328350 {
					t.Error(value, err)
					return
				}
			}
		}()
	}
	group.Wait()
}

func TestContext(t *testing.T) {
	c := NewContext()
	a := c.Ones([]int{2}, Float32)
	expect(t, c.Add(a, a), []int{2}, 2, 2)
	c.Close()
	if !errors.Is(a.Err(), ErrFreed) {
		t.Fatal(a.Err())
	}
}

func TestFinalisersFree(t *testing.T) {
	for i := 0; i < 2000; i++ {
		if err := Eval(Ones([]int{256, 256}, Float32)); err != nil { // 512 MB, if nothing were freed
			t.Fatal(err)
		}
		if i%100 == 0 {
			runtime.GC()
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	x, y := Ones([]int{10}, Float32), Ones([]int{10}, Float32)
	for i := 0; i < b.N; i++ {
		Add(x, y).Free()
	}
}

func BenchmarkAddEval(b *testing.B) {
	x, y := Ones([]int{10}, Float32), Ones([]int{10}, Float32)
	for i := 0; i < b.N; i++ {
		a := Add(x, y)
		if err := Eval(a); err != nil {
			b.Fatal(err)
		}
		a.Free()
	}
}
