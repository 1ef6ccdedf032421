// to[o, i, k] = from[o, index[i], k] in words. A negative index counts from the end. An index that is out of range reads element 0,
// because addresses have no bounds, and raises the status word, which the caller reads after the run.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
  Words from, index, to, status;
  uint count, inner, indices, extent, index_words;
} p;

void main() {
  uint i = invocation_number();
  if (i >= p.count) return;
  uint k = i % p.inner, rest = i / p.inner;
  uint which = rest % p.indices, o = rest / p.indices;
  int at = int(p.index.at[which * p.index_words]);
  // The upper word of a 64-bit index only repeats the sign.
  bool wide = p.index_words == 2 && int(p.index.at[which * 2 + 1]) != (at < 0 ? -1 : 0);
  if (at < 0) at += int(p.extent);
  if (wide || at < 0 || at >= int(p.extent)) {
    p.status.at[0] = 1;
    at = 0;
  }
  p.to.at[i] = p.from.at[(o * p.extent + uint(at)) * p.inner + k];
}
