// Fits a line to points by gradient descent.
package main

import (
	"fmt"
	"log"

	"sardonyx"
)

func main() {
	fmt.Println(sardonyx.Info())
	x := sardonyx.Arange(0, 10, 1)
	y := sardonyx.Add(sardonyx.Multiply(x, scalar(3)), scalar(1)) // y = 3x + 1
	slope, offset := scalar(0), scalar(0)
	for step := 0; step < 2000; step++ {
		wrong := sardonyx.Subtract(sardonyx.Add(sardonyx.Multiply(x, slope), offset), y)
		slope = sardonyx.Subtract(slope, sardonyx.Multiply(scalar(0.01), sardonyx.Mean(sardonyx.Multiply(wrong, x))))
		offset = sardonyx.Subtract(offset, sardonyx.Multiply(scalar(0.01), sardonyx.Mean(wrong)))
		if err := sardonyx.Eval(slope, offset); err != nil {
			log.Fatal(err)
		}
	}
	a, err := sardonyx.Item[float32](slope)
	if err != nil {
		log.Fatal(err)
	}
	b, err := sardonyx.Item[float32](offset)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("y = %.2f x + %.2f\n", a, b)
}

func scalar(value float64) *sardonyx.Array { return sardonyx.Full(nil, value, sardonyx.Float32) }
