#pragma once
// Models as text, for tests. One statement a line; '#' starts a comment:
//
//   opset 17                          the default is 20; `opset com.microsoft 1` for other domains
//   input x: float32[2,n]
//   input w: float32[2] = 1 2         an input with a default
//   constant k: int64[2] 3 4          one value stands for all elements: `constant z: float32[64,64] 0`
//   y, _ = Split(x, _, k) {axis=0, names=["a", "b"], scale=1.5, value=int64[1](7)}
//   z = com.microsoft.Gelu(y)
//   r = If(c)
//     then_branch {                   subgraphs follow their node; names that they lack are captured from outside
//       output y
//     }
//   output z: float32[2,n] as result  type and name for users may be left out
//
// In strings \xHH is a byte. Types are written as Type::str() writes them; float constants may be nan, inf and -inf.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace sdx::testing {

// Throws Error(invalid_argument) with the line that is not understood. Types are what the text declares: nothing is inferred.
Model parse_model(std::string_view text);

// The serialised model, as Session::from_bytes() takes it.
std::string model_bytes(std::string_view text);

}  // namespace sdx::testing
