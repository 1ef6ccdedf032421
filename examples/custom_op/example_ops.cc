// Two operators of domain "example":
//   ScaledSquare(x) {scale: float = 1}: scale * x * x, with shape inference and a gradient;
//   Positive(x): the elements above zero, whose number shows only when it has run.

#include <sdx/custom_op.h>

#include <new>

namespace {

struct ScaledSquare {
  float scale = 1;
};

sdx_status create(const sdx_op_api* api, const sdx_op_attributes* attributes, void*, void** kernel) {
  auto* made = new (std::nothrow) ScaledSquare;
  if (made == nullptr) return api->fail(SDX_OUT_OF_MEMORY, "no memory for a kernel");
  if (const sdx_status status = api->attribute_float(attributes, "scale", &made->scale)) {
    delete made;
    return status;
  }
  *kernel = made;
  return SDX_OK;
}

void destroy(void* kernel, void*) { delete static_cast<ScaledSquare*>(kernel); }

struct Work {
  const float* x;
  float* y;
  float scale;
};

sdx_status run(const sdx_op_api* api, sdx_op_call* call, void* kernel, void*) {
  const sdx_op_tensor* x = api->input(call, 0);
  sdx_op_tensor* y = nullptr;
  if (const sdx_status status = api->output(call, 0, api->tensor_dtype(x), api->tensor_shape(x), api->tensor_rank(x), &y)) {
    return status;
  }
  Work work{static_cast<const float*>(api->tensor_data(x)), static_cast<float*>(api->tensor_mutable_data(y)),
            static_cast<const ScaledSquare*>(kernel)->scale};
  const auto body = [](int64_t begin, int64_t end, void* argument) {
    const Work& w = *static_cast<Work*>(argument);
    for (int64_t i = begin; i < end; ++i) w.y[i] = w.scale * w.x[i] * w.x[i];
  };
  return api->parallel_for(call, api->tensor_count(x), 4096, body, &work);
}

sdx_status infer(const sdx_op_api* api, sdx_op_inference* inference, void*) { return api->infer_output_like(inference, 0, 0, 0); }

// d/dx scale * x^2 = 2 * scale * x
sdx_status gradient(const sdx_op_api* api, sdx_op_gradient* g, void*) {
  float factor = 1;
  if (const sdx_status status = api->attribute_float(api->gradient_attributes(g), "scale", &factor)) return status;
  const char* const c[] = {"factor"};
  if (const sdx_status status = api->gradient_node(g, "", "Constant", 13, nullptr, 0, c, 1)) return status;
  if (const sdx_status status = api->gradient_set_float(g, "value_float", 2 * factor)) return status;
  const char* const slope_in[] = {api->gradient_input(g, 0), "factor"};
  const char* const slope[] = {"slope"};
  if (const sdx_status status = api->gradient_node(g, "", "Mul", 14, slope_in, 2, slope, 1)) return status;
  const char* const dx_in[] = {api->gradient_of_output(g, 0), "slope"};
  const char* const dx[] = {"dx"};
  if (const sdx_status status = api->gradient_node(g, "", "Mul", 14, dx_in, 2, dx, 1)) return status;
  return api->gradient_of_input(g, 0, "dx");
}

sdx_status run_positive(const sdx_op_api* api, sdx_op_call* call, void*, void*) {
  const sdx_op_tensor* x = api->input(call, 0);
  const float* values = static_cast<const float*>(api->tensor_data(x));
  const int64_t n = api->tensor_count(x);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) kept += values[i] > 0 ? 1 : 0;
  sdx_op_tensor* y = nullptr;
  if (const sdx_status status = api->output(call, 0, 1, &kept, 1, &y)) return status;
  float* out = static_cast<float*>(api->tensor_mutable_data(y));
  for (int64_t i = 0; i < n; ++i) {
    if (values[i] > 0) *out++ = values[i];
  }
  return SDX_OK;
}

}  // namespace

extern "C" SDX_OP_EXPORT sdx_status sdx_register_operators(const sdx_op_api* api, sdx_op_registry* registry) {
  const sdx_op_formal x{"x", "T", SDX_OP_TYPE(1), SDX_OP_REQUIRED};
  const sdx_op_formal y{"y", "T", SDX_OP_TYPE(1), SDX_OP_REQUIRED};
  const sdx_op_attribute scale{"scale", SDX_OP_FLOAT, 0};

  sdx_op_definition square = SDX_OP_DEFINITION("example", "ScaledSquare");
  square.inputs = &x;
  square.input_count = 1;
  square.outputs = &y;
  square.output_count = 1;
  square.attributes = &scale;
  square.attribute_count = 1;
  square.create = create;
  square.run = run;
  square.destroy = destroy;
  square.infer = infer;
  square.gradient = gradient;
  if (const sdx_status status = api->add_operator(registry, &square)) return status;

  sdx_op_definition positive = SDX_OP_DEFINITION("example", "Positive");
  positive.inputs = &x;
  positive.input_count = 1;
  positive.outputs = &y;
  positive.output_count = 1;
  positive.run = run_positive;
  return api->add_operator(registry, &positive);
}
