// Any bytes, read as a checkpoint; the first byte says how many of the last ones are its second file. What was read is written,
// and read again the same. Only sdx::Error may come out, and nothing may be `internal`.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "train/checkpoint/format.h"

namespace {

using sdx::train::CheckpointState;

void broken(const char* what) {
  std::fprintf(stderr, "BROKEN: %s\n", what);
  std::abort();
}

void exercise(std::span<const std::byte> bytes, std::span<const std::byte> external) {
  (void)sdx::train::external_extent(bytes, external);
  const CheckpointState state = sdx::train::decode_checkpoint(bytes, external);
  const std::vector<std::byte> once = state.bytes(true);
  const CheckpointState again = CheckpointState::load(once);
  if (again.bytes(true) != once) broken("writing what was read gives another file");
  if (again.parameters.size() != state.parameters.size()) broken("parameters are lost");
  if (again.properties.size() != state.properties.size()) broken("properties are lost");
  if (state.nominal) return;
  (void)state.clone();
  (void)sdx::train::sum(state, sdx::train::difference(state, again));
  CheckpointState copy = state.clone();
  try {
    copy.from_buffer(state.to_buffer(false), false);
  } catch (const sdx::Error& e) {
    if (e.code() != sdx::ErrorCode::invalid_argument) throw;  // not all are float32
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto all = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t second = std::min<std::size_t>(data[0], all.size());
  try {
    exercise(all.first(all.size() - second), all.last(second));
  } catch (const sdx::Error& e) {
    if (e.code() == sdx::ErrorCode::internal) broken(e.what());
  }
  return 0;
}
