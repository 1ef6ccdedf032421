// A library that misbehaves, in the way that BAD says when it is compiled.

#include <sdx/custom_op.h>

#include <stdexcept>

namespace {

sdx_status run(const sdx_op_api* api, sdx_op_call* call, void*, void*) {
  (void)api;
  (void)call;
  if (BAD == 3) throw std::runtime_error("run went wrong");
  if (BAD == 4) return api->fail(SDX_INVALID_ARGUMENT, "this input is not to my taste");
  return SDX_OK;  // 5: makes no output
}

}  // namespace

extern "C" SDX_OP_EXPORT sdx_status sdx_register_operators(const sdx_op_api* api, sdx_op_registry* registry) {
  if (BAD == 1) throw std::runtime_error("no licence");
  const sdx_op_formal x{"x", "T", 0, SDX_OP_REQUIRED};
  sdx_op_definition op = SDX_OP_DEFINITION(BAD == 6 ? "" : "example", BAD == 6 ? "Relu" : "ScaledSquare");
  if (BAD == 2) op.abi = 99;
  op.inputs = &x;
  op.input_count = 1;
  op.outputs = &x;
  op.output_count = 1;
  op.run = run;
  return api->add_operator(registry, &op);
}
