#include <cstdio>
#include <sdx/sdx.hpp>

#include "model.h"

int main() {
  const sdx::Session session = sdx::Session::from_bytes(std::as_bytes(std::span(kModel)));
  const sdx::NamedValues out = session.run({{"x", sdx::Tensor::of<float>({3}, {1.0F, -2.0F, 0.5F})}});
  const auto y = out.tensor("y").values<float>();
  if (y.size() != 3 || y[0] != -1.0F || y[1] != 2.0F || y[2] != -0.5F) return 1;
  try {
    session.run({{"z", sdx::Tensor::scalar(1.0F)}});
    return 2;
  } catch (const sdx::Error& e) {  // across the library's border
    if (e.code() != sdx::ErrorCode::invalid_argument) return 3;
  }
  std::puts(session.report().text().c_str());
  return 0;
}
