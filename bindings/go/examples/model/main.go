// Runs an ONNX model on zeros and says what came out, and what ran where: model FILE.onnx
package main

import (
	"fmt"
	"log"
	"os"

	"sardonyx"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: model FILE.onnx")
	}
	session, err := sardonyx.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer session.Free()
	inputs := map[string]*sardonyx.Tensor{}
	for i, name := range session.Inputs() {
		shape, dtype := session.InputShape(i)
		count := 1
		for d := range shape {
			if shape[d] < 0 {
				shape[d] = 1 // an open extent
			}
			count *= shape[d]
		}
		if inputs[name], err = zeros(dtype, count, shape); err != nil {
			log.Fatal(err)
		}
	}
	outputs, err := session.Run(inputs)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range session.Outputs() {
		fmt.Println(name, outputs[name].Shape())
	}
	fmt.Print(session.Report())
}

func zeros(dtype sardonyx.Dtype, count int, shape []int) (*sardonyx.Tensor, error) {
	switch dtype {
	case sardonyx.Int64:
		return sardonyx.NewTensor(make([]int64, count), shape...)
	case sardonyx.Int32:
		return sardonyx.NewTensor(make([]int32, count), shape...)
	case sardonyx.UInt8:
		return sardonyx.NewTensor(make([]uint8, count), shape...)
	case sardonyx.Bool:
		return sardonyx.NewTensor(make([]bool, count), shape...)
	}
	return sardonyx.NewTensor(make([]float32, count), shape...)
}
