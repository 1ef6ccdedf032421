package sardonyx

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

// y = x + x, of float32[n]: a model of 58 bytes, written by hand as ONNX's protocol buffers.
func doubler() []byte {
	text := func(field byte, s string) []byte { return append([]byte{field<<3 | 2, byte(len(s))}, s...) }
	message := func(field byte, parts ...[]byte) []byte {
		var body []byte
		for _, p := range parts {
			body = append(body, p...)
		}
		return append([]byte{field<<3 | 2, byte(len(body))}, body...)
	}
	number := func(field, value byte) []byte { return []byte{field << 3, value} }
	value := func(field byte, name string) []byte {
		dim := message(1, text(2, "n"))
		return message(field, text(1, name), message(2, message(1, number(1, 1), message(2, dim))))
	}
	node := message(1, text(1, "x"), text(1, "x"), text(2, "y"), text(4, "Add"))
	graph := message(7, node, text(2, "g"), value(11, "x"), value(12, "y"))
	model := append(number(1, 8), graph...)
	return append(model, message(8, number(2, 17))...)
}

func TestSession(t *testing.T) {
	s, err := OpenBytes(doubler(), Options{Providers: []string{"cpu"}, Set: map[string]string{"threads": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	if !reflect.DeepEqual(s.Inputs(), []string{"x"}) || !reflect.DeepEqual(s.Outputs(), []string{"y"}) {
		t.Fatal(s.Inputs(), s.Outputs())
	}
	if shape, dtype := s.InputShape(0); !reflect.DeepEqual(shape, []int{-1}) || dtype != Float32 {
		t.Fatal(shape, dtype)
	}
	x, err := NewTensor([]float32{1, 2, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(map[string]*Tensor{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	y, err := TensorData[float32](out["y"])
	if err != nil || !reflect.DeepEqual(y, []float32{2, 4, 6}) || !reflect.DeepEqual(out["y"].Shape(), []int{3}) {
		t.Fatal(y, err)
	}
	if s.Report() == "" {
		t.Fatal("no report")
	}
	if _, err := s.Run(map[string]*Tensor{"z": x}); !errors.Is(err, ErrInvalidInput) {
		t.Fatal(err)
	}
	if _, err := s.Run(map[string]*Tensor{"x": x}, "nothing"); err == nil {
		t.Fatal("an unknown output")
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.RunContext(done, map[string]*Tensor{"x": x}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestSessionErrors(t *testing.T) {
	if _, err := Open("there is no such file.onnx"); err == nil {
		t.Fatal("opened")
	}
	if _, err := OpenBytes([]byte("no model")); !errors.Is(err, ErrInvalidModel) {
		t.Fatal(err)
	}
	if _, err := OpenBytes(doubler(), Options{Set: map[string]string{"thread": "1"}}); !errors.Is(err, ErrInvalidInput) {
		t.Fatal(err)
	}
	if _, err := NewTensor([]float32{1, 2}, 3); err == nil {
		t.Fatal("two values for three")
	}
}

func TestStrings(t *testing.T) {
	words, err := NewStrings([]string{"a", "", "größer"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	back, err := words.Strings()
	if err != nil || !reflect.DeepEqual(back, []string{"a", "", "größer"}) {
		t.Fatal(back, err)
	}
	if _, err := TensorData[float32](words); err == nil {
		t.Fatal("strings as numbers")
	}
}
