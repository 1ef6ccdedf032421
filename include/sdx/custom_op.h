/* Custom operators, in C: a shared library that exports sdx_register_operators() adds them to the sessions that name the
 * library (SessionOptions::custom_ops, sdx_options_add_custom_ops, `sdx run --custom-ops`). The library needs only this header
 * and links nothing: it calls the engine through the table sdx_op_api. See docs/custom-operators.md and the example in
 * examples/custom_op.
 *
 * Versions: sdx_op_api and sdx_op_definition grow only at the end, and SDX_OP_ABI counts their versions. A library built with an
 * older header continues to work; one built with a newer header is refused with a message.
 * Status: every callback returns SDX_OK, or what api->fail(status, message) returned. C++ exceptions that leave a callback are
 * caught and become errors; a callback that crashes takes the process with it.
 * Threads: sdx_register_operators runs once for each session that is opened. create, run, destroy, infer and gradient may be
 * called from any thread; run also concurrently for the same kernel. api functions may be called from any thread as long
 * as the callback that received the object has not returned. Ownership: strings and arrays that the engine hands out live until
 * the callback returns; data to which a definition points is copied when it is added, except user_data and the functions, which
 * must live as long as the library is loaded. */
#ifndef SDX_CUSTOM_OP_H
#define SDX_CUSTOM_OP_H

#include <sdx/sdx.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SDX_OP_ABI 1u

/* A set of element types: SDX_OP_TYPE(1) | SDX_OP_TYPE(11) is float32 and float64. 0 stands for any type. */
#define SDX_OP_TYPE(dtype) ((uint64_t)1 << (dtype))

/* sdx_op_formal.arity. Variadic: the last formal, any number of arguments, at least one. */
#define SDX_OP_REQUIRED 0
#define SDX_OP_OPTIONAL 1
#define SDX_OP_VARIADIC 2

/* sdx_op_attribute.kind */
#define SDX_OP_INT 0
#define SDX_OP_FLOAT 1
#define SDX_OP_STRING 2
#define SDX_OP_TENSOR 3
#define SDX_OP_INTS 4
#define SDX_OP_FLOATS 5
#define SDX_OP_STRINGS 6

/* sdx_op_definition.flags. Not deterministic: equal inputs may give different outputs; such nodes are neither computed ahead of a
 * run nor merged with equal ones. */
#define SDX_OP_NOT_DETERMINISTIC 1u

typedef struct sdx_op_registry sdx_op_registry;     /* what sdx_register_operators adds to */
typedef struct sdx_op_attributes sdx_op_attributes; /* of one node */
typedef struct sdx_op_tensor sdx_op_tensor;         /* an input, an output or an attribute of a node */
typedef struct sdx_op_call sdx_op_call;             /* one run of one node */
typedef struct sdx_op_inference sdx_op_inference;   /* what is known about one node's inputs before they are computed */
typedef struct sdx_op_gradient sdx_op_gradient;     /* nodes that compute the gradient of one node */
typedef struct sdx_op_api sdx_op_api;

typedef struct sdx_op_formal {
  const char* name;
  const char* type_variable; /* arguments whose formals share it have one element type; NULL: none */
  uint64_t types;            /* permitted element types: SDX_OP_TYPE(…) | …; 0: any */
  int32_t arity;
} sdx_op_formal;

typedef struct sdx_op_attribute {
  const char* name;
  int32_t kind;
  int32_t required;
} sdx_op_attribute;

/* One operator. Zero-initialise, set abi and size by SDX_OP_DEFINITION, then fill in. */
typedef struct sdx_op_definition {
  uint32_t abi;       /* SDX_OP_ABI */
  uint32_t size;      /* sizeof(sdx_op_definition) */
  const char* domain; /* "my.company"; also one of ONNX's, for operators that the engine lacks */
  const char* name;
  int32_t since_version; /* first version of the domain's opset with this behaviour; 0 stands for 1 */
  uint32_t flags;
  const sdx_op_formal* inputs;
  size_t input_count;
  const sdx_op_formal* outputs;
  size_t output_count;
  const sdx_op_attribute* attributes; /* checked before create; others may be read as well */
  size_t attribute_count;
  void* user_data; /* passed to every callback */

  /* Creates the kernel of one node. May be NULL: run then receives a NULL kernel. */
  sdx_status (*create)(const sdx_op_api* api, const sdx_op_attributes* attributes, void* user_data, void** kernel);
  /* Required. Produces every output for which api->wants_output() is true. May run concurrently: lock before changing the
   * kernel. */
  sdx_status (*run)(const sdx_op_api* api, sdx_op_call* call, void* kernel, void* user_data);
  /* May be NULL. Not called if create failed. */
  void (*destroy)(void* kernel, void* user_data);
  /* Infers the outputs' types and shapes. May be NULL: element types then follow from type variables, and shapes are known
   * once the node has run. Called before inputs are known and again for the shapes of a run; every extent it reports must be
   * exact. */
  sdx_status (*infer)(const sdx_op_api* api, sdx_op_inference* inference, void* user_data);
  /* Emits nodes that compute the gradients of the inputs. May be NULL: then training cannot go through the operator. */
  sdx_status (*gradient)(const sdx_op_api* api, sdx_op_gradient* gradient, void* user_data);
} sdx_op_definition;

#define SDX_OP_DEFINITION(domain_name, op_name)                                                                                \
  {                                                                                                                            \
    SDX_OP_ABI, (uint32_t)sizeof(sdx_op_definition), domain_name, op_name, 1, 0u, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, \
        NULL, NULL, NULL                                                                                                       \
  }

/* A loop body over [begin, end). */
typedef void (*sdx_op_range)(int64_t begin, int64_t end, void* argument);

struct sdx_op_api {
  uint32_t abi;  /* newest version that the engine offers; 1 for the functions below */
  uint32_t size; /* of this table */

  /* Stores a copy of the message for this thread and returns `status` (SDX_INTERNAL in place of SDX_OK). Usage: return
   * api->fail(...). */
  sdx_status (*fail)(sdx_status status, const char* message);
  sdx_status (*add_operator)(sdx_op_registry* registry, const sdx_op_definition* definition);

  /* Attributes. Getters leave *value unchanged if the node lacks the attribute, and fail if it has another kind. */
  int (*has_attribute)(const sdx_op_attributes* attributes, const char* name);
  sdx_status (*attribute_int)(const sdx_op_attributes* attributes, const char* name, int64_t* value);
  sdx_status (*attribute_float)(const sdx_op_attributes* attributes, const char* name, float* value);
  sdx_status (*attribute_string)(const sdx_op_attributes* attributes, const char* name, const char** value, size_t* length);
  sdx_status (*attribute_tensor)(const sdx_op_attributes* attributes, const char* name, const sdx_op_tensor** value);
  sdx_status (*attribute_ints)(const sdx_op_attributes* attributes, const char* name, const int64_t** values, size_t* count);
  sdx_status (*attribute_floats)(const sdx_op_attributes* attributes, const char* name, const float** values, size_t* count);
  sdx_status (*attribute_strings_count)(const sdx_op_attributes* attributes, const char* name, size_t* count);
  /* Element `index` of a list of strings; NULL when there is none. */
  const char* (*attribute_strings_at)(const sdx_op_attributes* attributes, const char* name, size_t index);
  /* Opset version of the domain that the model imports. */
  int32_t (*opset_version)(const sdx_op_attributes* attributes);

  /* Tensors: dense, row-major, aligned for their element type; 4- and 2-bit types packed, low bits first. */
  sdx_dtype (*tensor_dtype)(const sdx_op_tensor* tensor);
  size_t (*tensor_rank)(const sdx_op_tensor* tensor);
  const int64_t* (*tensor_shape)(const sdx_op_tensor* tensor);
  int64_t (*tensor_count)(const sdx_op_tensor* tensor); /* elements */
  size_t (*tensor_bytes)(const sdx_op_tensor* tensor);
  const void* (*tensor_data)(const sdx_op_tensor* tensor); /* NULL for strings */
  void* (*tensor_mutable_data)(sdx_op_tensor* tensor);     /* of an output; NULL otherwise */
  /* Strings, UTF-8, also NUL-terminated. NULL when `index` is out of range or the elements are not strings. */
  const char* (*tensor_string)(const sdx_op_tensor* tensor, int64_t index, size_t* length);
  sdx_status (*tensor_set_string)(sdx_op_tensor* tensor, int64_t index, const char* text, size_t length);

  /* A run. Inputs are tensors; NULL if omitted. */
  size_t (*input_count)(const sdx_op_call* call);
  const sdx_op_tensor* (*input)(const sdx_op_call* call, size_t index);
  size_t (*output_count)(const sdx_op_call* call);
  int (*wants_output)(const sdx_op_call* call, size_t index);
  /* The tensor to write output `index` into, uninitialised; it never overlaps an input. Unwanted outputs may be made too.
   * Fails for negative extents and if memory runs out. */
  sdx_status (*output)(sdx_op_call* call, size_t index, sdx_dtype dtype, const int64_t* shape, size_t rank,
                       sdx_op_tensor** tensor);
  /* Calls body over disjoint ranges that cover [0, count), on the threads of the session; each range but the last is at least
   * `grain` long. Returns when all are done; fails when body threw. */
  sdx_status (*parallel_for)(sdx_op_call* call, int64_t count, int64_t grain, sdx_op_range body, void* argument);
  /* SDX_OK, SDX_CANCELLED or SDX_DEADLINE_EXCEEDED: check regularly in long loops, and return any status other than SDX_OK. */
  sdx_status (*check_stop)(const sdx_op_call* call);

  /* Inference. Unknown: element type 0, rank -1, extent -1. */
  const sdx_op_attributes* (*infer_attributes)(const sdx_op_inference* inference);
  size_t (*infer_input_count)(const sdx_op_inference* inference);
  size_t (*infer_output_count)(const sdx_op_inference* inference);
  int (*infer_has_input)(const sdx_op_inference* inference, size_t index);
  sdx_dtype (*infer_input_dtype)(const sdx_op_inference* inference, size_t index);
  int64_t (*infer_input_rank)(const sdx_op_inference* inference, size_t index);
  int64_t (*infer_input_extent)(const sdx_op_inference* inference, size_t index, size_t axis);
  /* The input's value if already known (weights, folded shapes); NULL otherwise. */
  const sdx_op_tensor* (*infer_input_value)(const sdx_op_inference* inference, size_t index);
  /* `rank` -1: unknown; `shape` has `rank` extents, -1 for each unknown one. */
  sdx_status (*infer_output)(sdx_op_inference* inference, size_t index, sdx_dtype dtype, const int64_t* shape, int64_t rank);
  /* Output `index` has the shape of input `input`, symbols included; `dtype` 0: its element type too. */
  sdx_status (*infer_output_like)(sdx_op_inference* inference, size_t index, size_t input, sdx_dtype dtype);
  /* Extent `axis` of output `index`, whose rank must have been set, equals extent `input_axis` of input `input`, symbolic or
   * not. */
  sdx_status (*infer_extent_like)(sdx_op_inference* inference, size_t index, size_t axis, size_t input, size_t input_axis);

  /* Gradients. Values have names: of the node's inputs, outputs and of the gradients that flow into its outputs (NULL when left
   * out), and names that the gradient's own nodes give to what they compute, unique within this gradient. */
  const sdx_op_attributes* (*gradient_attributes)(const sdx_op_gradient* gradient);
  const char* (*gradient_input)(const sdx_op_gradient* gradient, size_t index);
  const char* (*gradient_output)(const sdx_op_gradient* gradient, size_t index);
  const char* (*gradient_of_output)(const sdx_op_gradient* gradient, size_t index);
  /* Appends a node. The setters below add attributes to the node appended last. Domain "" is ai.onnx. */
  sdx_status (*gradient_node)(sdx_op_gradient* gradient, const char* domain, const char* op, int32_t version,
                              const char* const* inputs, size_t input_count, const char* const* outputs, size_t output_count);
  sdx_status (*gradient_set_int)(sdx_op_gradient* gradient, const char* name, int64_t value);
  sdx_status (*gradient_set_float)(sdx_op_gradient* gradient, const char* name, float value);
  sdx_status (*gradient_set_string)(sdx_op_gradient* gradient, const char* name, const char* value);
  sdx_status (*gradient_set_ints)(sdx_op_gradient* gradient, const char* name, const int64_t* values, size_t count);
  sdx_status (*gradient_set_floats)(sdx_op_gradient* gradient, const char* name, const float* values, size_t count);
  /* Declares the value `name` as the gradient of input `index`. Other inputs have no gradient. */
  sdx_status (*gradient_of_input)(sdx_op_gradient* gradient, size_t index, const char* name);
};

/* What the library exports. `api` and the registry are valid until it returns; `api` also in every later callback. */
typedef sdx_status (*sdx_register_operators_fn)(const sdx_op_api* api, sdx_op_registry* registry);
#if defined(__GNUC__)
#define SDX_OP_EXPORT __attribute__((visibility("default")))
#else
#define SDX_OP_EXPORT
#endif

#ifdef __cplusplus
}
#endif

#endif
