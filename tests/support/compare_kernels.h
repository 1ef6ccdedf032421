#pragma once
// The cpu provider's fast kernels against the operators' references, one node at a time.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ops/infer.h"
#include "providers/cpu/kernel_table.h"
#include "support/graph_text.h"
#include "support/single_op.h"
#include "tensor/element.h"

namespace sdx::cpu::test {

// Deterministic values between -2 and 2, or -2 and 4 in sixteenths, no two neighbours alike.
inline Tensor values_for(const Type& type, int seed, bool sixteenths) {
  Tensor t(type.elem, to_shape(*type.shape));
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const auto raw = static_cast<double>((i * 37 + seed * 101 + i * i % 11) % 97);
    set_element(t, i, is_floating(type.elem) ? raw / (sixteenths ? 16.0 : 24.0) - 2.0 : std::floor(raw));
  }
  return t;
}

inline void make_special(Tensor& t) {
  if (!is_floating(t.dtype()) || t.size() < 16) return;
  set_element(t, 5, std::nan(""));
  set_element(t, t.size() / 2, INFINITY);
  set_element(t, t.size() - 1, -INFINITY);
}

// Results that are rounded to 16 bits may fall to either side where float32 differs in its last digit.
inline double tolerance(DataType type) { return type == DataType::float16 ? 1e-3 : (type == DataType::bfloat16 ? 8e-3 : 1e-5); }

struct KernelCase {
  const char* kernel;  // that must take the node
  const char* graph;   // one node
  // > 0: outputs 1 and 2 lie in the memory of this input and the next; behind the tokens, where the reference has zeros, what lay
  // there may stay.
  std::size_t cache_at = 0;
  bool sixteenths = false;  // inputs that bfloat16 holds exactly
  bool special = false;     // floats with a NaN and both infinities
};

// Runs the graph's only node through the best kernel and through the reference.
inline void compare(const KernelCase& test) {
  SCOPED_TRACE(test.graph);
  Graph graph = sdx::testing::parse_model(test.graph).graph;
  ops::infer_in_place(graph);
  ASSERT_EQ(graph.nodes().size(), 1U);
  const Node& node = graph.node(0);
  std::unique_ptr<Kernel> kernel;
  std::string reasons;
  for (const KernelEntry* entry : kernel_table().find(node.domain, node.op_type)) {
    LowerContext context(graph, 0);
    if (!kernel) kernel = entry->make(context);
    reasons += entry->name + ": " + context.reason() + "; ";
  }
  ASSERT_TRUE(kernel) << reasons;
  EXPECT_EQ(kernel->name(), test.kernel);

  std::vector<Value> inputs(node.inputs.size()), fast(node.outputs.size()), slow(node.outputs.size());
  std::vector<Tensor> before(node.outputs.size());
  std::vector<const Value*> in(node.inputs.size());
  std::vector<Value*> fast_out(node.outputs.size()), slow_out(node.outputs.size());
  std::vector<const Type*> in_types(node.inputs.size()), out_types(node.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const ValueInfo& v = graph.value(node.inputs[i]);
    inputs[i] = v.constant ? *v.constant : values_for(v.type, static_cast<int>(i), test.sixteenths);
    if (test.special && !v.constant) make_special(inputs[i].tensor());
    in[i] = &inputs[i];
    in_types[i] = &v.type;
  }
  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Type& type = graph.value(node.outputs[i]).type;
    ASSERT_TRUE(type.has_static_shape());
    fast[i] = test.cache_at > 0 && i > 0 ? inputs[test.cache_at + i - 1].tensor() : Tensor(type.elem, to_shape(*type.shape));
    if (test.cache_at > 0 && i > 0) before[i] = fast[i].tensor().clone();
    fast_out[i] = &fast[i];
    slow_out[i] = &slow[i];
    out_types[i] = &type;
  }
  ops::testing::FakeServices services;
  KernelContext context;
  context.inputs = in;
  context.outputs = slow_out;
  context.services = &services;
  make_reference(node)->run(context);
  context.outputs = fast_out;
  ResolveContext resolve;
  resolve.inputs = in_types;
  resolve.outputs = out_types;
  std::unique_ptr<KernelState> state;
  if (!kernel->allocates_outputs()) state = kernel->resolve(resolve);
  std::vector<std::byte> workspace(resolve.workspace_bytes + 64);
  context.state = state.get();
  context.workspace = workspace.data();
  kernel->run(context);

  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (fast_out[i] == nullptr) continue;
    const Tensor &a = fast[i].tensor(), &b = slow[i].tensor();
    ASSERT_EQ(a.shape(), b.shape());
    for (std::int64_t k = 0; k < a.size(); ++k) {
      const double expected = element_as_double(b, k);
      if (element_as_double(a, k) == expected) continue;  // infinities too
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(element_as_double(a, k))) << "output " << i << ", element " << k;
        continue;
      }
      if (expected == 0 && before[i].defined() && element_as_double(a, k) == element_as_double(before[i], k)) continue;
      ASSERT_NEAR(element_as_double(a, k), expected, tolerance(a.dtype()) * (1 + std::fabs(expected)))
          << "output " << i << ", element " << k;
    }
  }
}

}  // namespace sdx::cpu::test
