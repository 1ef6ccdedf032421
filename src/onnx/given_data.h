#pragma once
// Weights that a program holds in memory in place of the files that a model names.

#include <map>
#include <string>

#include <sdx/tensor.hpp>

#include "tensor/pb.h"

namespace sdx {

struct GivenData {
  std::map<std::string, OwnedBytes, std::less<>> files;  // by location, as models write it
  std::map<std::string, Tensor, std::less<>> tensors;  // initializers whose data are external, by name: their files are not read
};

}  // namespace sdx
