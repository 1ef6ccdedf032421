#include "tensor/poison.h"

#include "base/poison.h"

namespace sdx {

void poison(Tensor& tensor) {
  void* data = tensor.mutable_data();
  switch (tensor.dtype()) {
    case DataType::float64:
    case DataType::complex128: return poison(data, tensor.bytes(), 0x7FF5A5A5A5A5A5A5, 8);
    case DataType::float16: return poison(data, tensor.bytes(), 0x7DA5, 2);
    case DataType::bfloat16: return poison(data, tensor.bytes(), 0x7FA5, 2);
    case DataType::float32:
    case DataType::complex64: return poison(data, tensor.bytes());
    default: return poison(data, tensor.bytes(), 0xA5, 1);
  }
}

}  // namespace sdx
