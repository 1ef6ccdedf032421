#pragma once
// The signature of a program's operator, read with regard to the version of its structure.

#include <string>
#include <vector>

#include "dropin/abi.h"

namespace sdx::dropin {

struct Argument {
  ElementType type = ELEMENT_UNDEFINED;  // undefined: any
  OrtCustomOpCharacteristic kind = INPUT_OUTPUT_REQUIRED;
  bool homogeneous = true;  // of a variadic one: all of one type
  int least = 1;            // of a variadic one

  bool operator==(const Argument&) const = default;
};

struct Signature {
  const OrtCustomOp* op = nullptr;
  std::string name;
  int since = 1, until = 0x7FFFFFFF;
  std::vector<Argument> inputs, outputs;
  bool runs_on_cpu = true;
  bool infers = false;
};

// Throws OrtError for an operator of a newer version than ours, without functions that it must have, or variadic in the middle.
Signature read_signature(const OrtCustomOp* op);

// Throws OrtError where an overload differs in more than types.
void check_overload(const Signature& first, const Signature& other);

}  // namespace sdx::dropin
