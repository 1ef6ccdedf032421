// Several invocations work on one row: kLanes of them, a power of two up to kGroup. A row's elements may lie `inner` apart, with
// `inner` rows interleaved.
layout(constant_id = 0) const uint kLanes = 256;
shared float parts[kGroup];

uint lane() { return gl_LocalInvocationIndex % kLanes; }
uint row_number() { return group_number() * (kGroup / kLanes) + gl_LocalInvocationIndex / kLanes; }
uint row_start(uint row, uint extent, uint inner) { return row / inner * extent * inner + row % inner; }

float sum_of_lanes(float x) {
  parts[gl_LocalInvocationIndex] = x;
  barrier();
  for (uint half_lanes = kLanes / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane() < half_lanes) parts[gl_LocalInvocationIndex] += parts[gl_LocalInvocationIndex + half_lanes];
    barrier();
  }
  float r = parts[gl_LocalInvocationIndex - lane()];
  barrier();
  return r;
}

float most_of(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : max(a, b); }

float most_of_lanes(float x) {
  parts[gl_LocalInvocationIndex] = x;
  barrier();
  for (uint half_lanes = kLanes / 2; half_lanes > 0; half_lanes /= 2) {
    if (lane() < half_lanes) {
      parts[gl_LocalInvocationIndex] = most_of(parts[gl_LocalInvocationIndex], parts[gl_LocalInvocationIndex + half_lanes]);
    }
    barrier();
  }
  float r = parts[gl_LocalInvocationIndex - lane()];
  barrier();
  return r;
}
