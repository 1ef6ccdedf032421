// A program's kernel that calls operators of the engine.
#include <cstring>

#include "dropin/objects.h"
#include "dropin/test_program.h"
#include "support/graph_text.h"

namespace sdx::dropin {
namespace {

// The operators that the kernels below call, and their results.
struct Called {
  std::string made, invoked;
  OrtOp* op = nullptr;
};
Called& called() {
  static Called one;
  return one;
}

OrtOpAttr* attribute(const char* name, std::int64_t value) {
  OrtOpAttr* made = nullptr;
  EXPECT_OK(Slot::CreateOpAttr, name, static_cast<const void*>(&value), 1, ORT_OP_ATTR_INT, &made);
  return made;
}

std::string make(const OrtKernelInfo* info, const char* op, int version, std::vector<const OrtOpAttr*> attributes, int inputs,
                 int outputs) {
  const char* const names[] = {"T"};
  const ElementType types[] = {ELEMENT_FLOAT};
  return ask(Slot::CreateOp, info, op, "", version, static_cast<const char* const*>(names),
             static_cast<const ElementType*>(types), 1, static_cast<const OrtOpAttr* const*>(attributes.data()),
             static_cast<int>(attributes.size()), inputs, outputs, &called().op);
}

// ai.test.Largest(x): the two largest elements of each row and where they are, by TopK.
OrtStatus* create_largest(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info, void** kernel) {
  *kernel = nullptr;
  EXPECT_EQ(make(info, "NoSuchOperator", 11, {}, 1, 1).substr(0, 2), "9:");
  OrtOpAttr* const axis = attribute("axis", -1);
  OrtOpAttr* const unknown = attribute("axis ", 7);  // says nothing to the operator, as in ONNX Runtime
  called().made = make(info, "TopK", 11, {axis, unknown}, 2, 2);
  the_api().call<void>(Slot::ReleaseOpAttr, axis);
  the_api().call<void>(Slot::ReleaseOpAttr, unknown);
  return nullptr;
}

OrtStatus* compute_largest(void*, OrtKernelContext* context) {
  const auto* const c = static_cast<const OrtKernelContext*>(context);
  const OrtValue* x = nullptr;
  EXPECT_OK(Slot::KernelContext_GetInput, c, std::size_t{0}, &x);
  const auto rows = x->value.tensor().dim(0);
  const std::int64_t shape[] = {rows, 2};
  OrtValue *values = nullptr, *places = nullptr, *preallocated = values;
  EXPECT_OK(Slot::KernelContext_GetOutput, context, std::size_t{0}, static_cast<const std::int64_t*>(shape), std::size_t{2},
            &values);
  EXPECT_OK(Slot::KernelContext_GetOutput, context, std::size_t{1}, static_cast<const std::int64_t*>(shape), std::size_t{2},
            &places);
  EXPECT_OK(Slot::KernelContext_GetPreallocatedOutput, c, std::size_t{0}, &preallocated);
  EXPECT_EQ(ask(Slot::KernelContext_GetPreallocatedOutput, c, std::size_t{2}, &preallocated).substr(0, 2), "2:");
  std::int64_t two = 2;
  const std::int64_t one[] = {1};
  OrtValue* k = nullptr;
  EXPECT_OK(Slot::CreateTensorWithDataAsOrtValue, cpu_memory(), static_cast<void*>(&two), sizeof(two),
            static_cast<const std::int64_t*>(one), std::size_t{1}, ELEMENT_INT64, &k);
  const OrtValue* const inputs[] = {x, k};
  OrtValue* const outputs[] = {values, places};
  const auto invoke = [&](int input_count, int output_count) {
    return ask(Slot::InvokeOp, c, static_cast<const OrtOp*>(called().op), static_cast<const OrtValue* const*>(inputs),
               input_count, static_cast<OrtValue* const*>(outputs), output_count);
  };
  EXPECT_EQ(invoke(3, 2).substr(0, 2), "2:");
  EXPECT_NE(invoke(1, 2), "");  // TopK needs k
  called().invoked = invoke(2, 2);
  the_api().call<void>(Slot::ReleaseValue, k);
  return nullptr;
}

OrtCustomOp largest_op() {
  OrtCustomOp op;
  std::memset(&op, 0, sizeof(op));
  op.version = 17;
  op.GetName = [](const OrtCustomOp*) { return "Largest"; };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputType = [](const OrtCustomOp*, std::size_t) { return ELEMENT_FLOAT; };
  op.GetOutputType = [](const OrtCustomOp*, std::size_t i) { return i == 0 ? ELEMENT_FLOAT : ELEMENT_INT64; };
  op.GetInputTypeCount = [](const OrtCustomOp*) { return std::size_t{1}; };
  op.GetOutputTypeCount = [](const OrtCustomOp*) { return std::size_t{2}; };
  op.GetInputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetOutputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return OrtMemTypeDefault; };
  op.CreateKernelV2 = &create_largest;
  op.KernelComputeV2 = &compute_largest;
  op.KernelDestroy = [](void*) { the_api().call<void>(Slot::ReleaseOp, called().op); };
  op.GetStartVersion = [](const OrtCustomOp*) { return 1; };
  op.GetEndVersion = [](const OrtCustomOp*) { return 0x7FFFFFFF; };
  return op;
}

TEST(DropinStandalone, KernelsCallOperatorsOfTheEngine) {
  const OrtCustomOp op = largest_op();
  OrtCustomOpDomain* domain = nullptr;
  OrtSessionOptions* options = nullptr;
  EXPECT_OK(Slot::CreateCustomOpDomain, "ai.test", &domain);
  EXPECT_OK(Slot::CustomOpDomain_Add, domain, &op);
  EXPECT_OK(Slot::CreateSessionOptions, &options);
  EXPECT_OK(Slot::AddCustomOpDomain, options, domain);
  {
    const Opened opened(
        testing::model_bytes("opset ai.test 1\ninput x: float32[n,3]\ny, i = ai.test.Largest(x)\noutput y\noutput i"), options);
    ASSERT_EQ(opened.problem, "");
    EXPECT_EQ(called().made, "");
    for (const std::int64_t rows : {1, 2}) {
      std::vector<float> data{5, 1, 7, 2, 9, 4};
      data.resize(static_cast<std::size_t>(rows) * 3);
      const Value_ x = floats(data, {rows, 3});
      std::vector<OrtValue*> results;
      ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y", "i"}, results), "");
      const Value_ y(results[0]), i(results[1]);
      EXPECT_EQ(called().invoked, "");
      const auto* const values = static_cast<const float*>(y->value.tensor().data());
      const auto* const places = static_cast<const std::int64_t*>(i->value.tensor().data());
      EXPECT_EQ(std::vector<float>(values, values + rows * 2),
                rows == 1 ? (std::vector<float>{7, 5}) : (std::vector<float>{7, 5, 9, 4}));
      EXPECT_EQ(std::vector<std::int64_t>(places, places + rows * 2),
                rows == 1 ? (std::vector<std::int64_t>{2, 0}) : (std::vector<std::int64_t>{2, 0, 1, 2}));
    }
  }
  the_api().call<void>(Slot::ReleaseSessionOptions, options);
  the_api().call<void>(Slot::ReleaseCustomOpDomain, domain);
}

}  // namespace
}  // namespace sdx::dropin
