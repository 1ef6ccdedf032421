#include "train/c/checkpoint.h"

#include <cstring>
#include <iterator>

namespace {

using sdx::session::guarded;
using sdx::session::require;
using sdx::train::CheckpointState;

CheckpointState& in(const sdx_checkpoint* c, const char* what = "checkpoint") { return *require(c, what).state; }

template <class F>
sdx_status giving(sdx_checkpoint** out, F&& make) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded([&] {
    sdx_checkpoint*& made = require(out, "out");
    made = new sdx_checkpoint{std::make_shared<CheckpointState>(make())};
  });
}

template <class T>
sdx_status set_property(sdx_checkpoint* checkpoint, const char* name, const T& value) noexcept {
  return guarded([&] { in(checkpoint).properties[&require(name, "name")] = value; });
}

template <class T>
const T& property(const sdx_checkpoint* checkpoint, const char* name, const char* type) {
  const auto& all = in(checkpoint).properties;
  const auto at = all.find(&require(name, "name"));
  if (at == all.end()) sdx::fail(sdx::ErrorCode::invalid_argument, "the checkpoint has no property '{}'", name);
  const T* value = std::get_if<T>(&at->second);
  if (value == nullptr) sdx::fail(sdx::ErrorCode::invalid_argument, "property '{}' is not of type {}", name, type);
  return *value;
}

void check_count(const CheckpointState& state, int frozen, size_t count) {
  const auto expected = static_cast<size_t>(state.size(frozen == 0));
  if (count != expected) {
    sdx::fail(sdx::ErrorCode::invalid_argument, "the buffer has {} elements; these parameters have {}", count, expected);
  }
}

}  // namespace

sdx_status sdx_checkpoint_load(const char* path, sdx_checkpoint** out) {
  return giving(out, [&] { return CheckpointState::load(std::filesystem::path(&require(path, "path"))); });
}

sdx_status sdx_checkpoint_from_bytes(const void* bytes, size_t size, sdx_checkpoint** out) {
  return giving(out,
                [&] { return CheckpointState::load(std::span(&require(static_cast<const std::byte*>(bytes), "bytes"), size)); });
}

sdx_status sdx_checkpoint_clone(const sdx_checkpoint* checkpoint, sdx_checkpoint** out) {
  return giving(out, [&] { return in(checkpoint).clone(); });
}

void sdx_checkpoint_free(sdx_checkpoint* checkpoint) { delete checkpoint; }

sdx_status sdx_checkpoint_save(const sdx_checkpoint* checkpoint, const char* path, int optimizer) {
  return guarded([&] { in(checkpoint).save(&require(path, "path"), optimizer != 0); });
}

size_t sdx_checkpoint_parameter_count(const sdx_checkpoint* checkpoint) {
  return checkpoint == nullptr ? 0 : checkpoint->state->parameters.size();
}

const char* sdx_checkpoint_parameter_name(const sdx_checkpoint* checkpoint, size_t index) {
  return index < sdx_checkpoint_parameter_count(checkpoint) ? checkpoint->state->parameters[index].name.c_str() : nullptr;
}

int sdx_checkpoint_parameter_trained(const sdx_checkpoint* checkpoint, size_t index) {
  return index < sdx_checkpoint_parameter_count(checkpoint) && checkpoint->state->parameters[index].requires_grad ? 1 : 0;
}

sdx_status sdx_checkpoint_get(const sdx_checkpoint* checkpoint, const char* name, sdx_tensor** out) {
  if (out != nullptr) *out = nullptr;
  return guarded([&] {
    const CheckpointState& state = in(checkpoint);
    sdx_tensor*& made = require(out, "out");
    const sdx::Tensor& value = state.at(&require(name, "name")).value;
    if (state.nominal) sdx::fail(sdx::ErrorCode::invalid_argument, "a nominal checkpoint holds no values");
    made = new sdx_tensor{value.clone()};
  });
}

sdx_status sdx_checkpoint_set(sdx_checkpoint* checkpoint, const char* name, const sdx_tensor* tensor) {
  return guarded([&] {
    CheckpointState& state = in(checkpoint);
    sdx::Tensor& to = state.at(&require(name, "name")).value;
    const sdx::Tensor& from = require(tensor, "tensor").tensor;
    if (state.nominal) sdx::fail(sdx::ErrorCode::invalid_argument, "a nominal checkpoint holds no values");
    if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "parameter '{}' is {}; received {}", name, to.type_string(),
                from.type_string());
    }
    if (to.bytes() != 0) std::memmove(to.mutable_data(), from.data(), to.bytes());
  });
}

size_t sdx_checkpoint_property_count(const sdx_checkpoint* checkpoint) {
  return checkpoint == nullptr ? 0 : checkpoint->state->properties.size();
}

const char* sdx_checkpoint_property_name(const sdx_checkpoint* checkpoint, size_t index) {
  if (index >= sdx_checkpoint_property_count(checkpoint)) return nullptr;
  return std::next(checkpoint->state->properties.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}

sdx_status sdx_checkpoint_set_int(sdx_checkpoint* checkpoint, const char* name, int64_t value) {
  return set_property(checkpoint, name, value);
}

sdx_status sdx_checkpoint_set_float(sdx_checkpoint* checkpoint, const char* name, float value) {
  return set_property(checkpoint, name, value);
}

sdx_status sdx_checkpoint_set_string(sdx_checkpoint* checkpoint, const char* name, const char* value) {
  return guarded([&] { in(checkpoint).properties[&require(name, "name")] = std::string(&require(value, "value")); });
}

sdx_status sdx_checkpoint_get_int(const sdx_checkpoint* checkpoint, const char* name, int64_t* value) {
  return guarded([&] { require(value, "value") = property<std::int64_t>(checkpoint, name, "whole number"); });
}

sdx_status sdx_checkpoint_get_float(const sdx_checkpoint* checkpoint, const char* name, float* value) {
  return guarded([&] { require(value, "value") = property<float>(checkpoint, name, "float"); });
}

sdx_status sdx_checkpoint_get_string(const sdx_checkpoint* checkpoint, const char* name, const char** value) {
  return guarded([&] { require(value, "value") = property<std::string>(checkpoint, name, "text").c_str(); });
}

size_t sdx_checkpoint_size(const sdx_checkpoint* checkpoint, int frozen) {
  return checkpoint == nullptr ? 0 : static_cast<size_t>(checkpoint->state->size(frozen == 0));
}

sdx_status sdx_checkpoint_to_buffer(const sdx_checkpoint* checkpoint, int frozen, float* buffer, size_t count) {
  return guarded([&] {
    const CheckpointState& state = in(checkpoint);
    check_count(state, frozen, count);
    if (count == 0) return;
    const sdx::Tensor all = state.to_buffer(frozen == 0);
    std::memcpy(&require(buffer, "buffer"), all.data(), all.bytes());
  });
}

sdx_status sdx_checkpoint_from_buffer(sdx_checkpoint* checkpoint, int frozen, const float* buffer, size_t count) {
  return guarded([&] {
    CheckpointState& state = in(checkpoint);
    check_count(state, frozen, count);
    if (count == 0) return;
    state.from_buffer(sdx::Tensor::view(&require(buffer, "buffer"), sdx::DataType::float32, {static_cast<std::int64_t>(count)}),
                      frozen == 0);
  });
}

sdx_status sdx_checkpoint_difference(const sdx_checkpoint* a, const sdx_checkpoint* b, sdx_checkpoint** out) {
  return giving(out, [&] { return sdx::train::difference(in(a, "a"), in(b, "b")); });
}

sdx_status sdx_checkpoint_sum(const sdx_checkpoint* base, const sdx_checkpoint* delta, double factor, sdx_checkpoint** out) {
  return giving(out, [&] { return sdx::train::sum(in(base, "base"), in(delta, "delta"), factor); });
}

sdx_status sdx_checkpoint_average(const sdx_checkpoint* const* checkpoints, size_t count, const double* weights,
                                  sdx_checkpoint** out) {
  return giving(out, [&] {
    std::vector<CheckpointState> states;
    for (size_t i = 0; i < count; ++i) states.push_back(in(require(checkpoints + i, "checkpoints"), "a checkpoint"));
    return sdx::train::average(states, weights == nullptr ? std::span<const double>() : std::span(weights, count));
  });
}
