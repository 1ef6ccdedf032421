
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "onnx/reader.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

const std::string kModel =
    "opset 20\n"
    "input x: float32[n,1,4,4]\n"
    "constant w: float32[2,1,1,1] 2 3\n"
    "constant one: float32[] 1\n"
    "k = Add(one, one)\n"
    "a = Conv(x, w)\n"
    "b = Mul(a, k)\n"
    "y = Relu(b)\n"
    "output y\n";

class OptimizedModel : public ::testing::Test {
 protected:
  std::size_t nodes_written(const SessionOptions& options) {
    const Session session = testing::open(kModel, options);
    const Model model = read_model(options.optimized_model);
    const Tensor x(DataType::float32, {3, 1, 4, 4});
    const NamedValues expected = session.run({{"x", x}});
    const NamedValues found = Session::open(options.optimized_model).run({{"x", x}});
    EXPECT_EQ(expected.tensor("y").shape(), found.tensor("y").shape());
    return model.graph.nodes().size();
  }
  const testing::TemporaryFolder dir_;
};

TEST_F(OptimizedModel, IsWrittenAtEveryLevel) {
  SessionOptions options;
  options.cache = false;
  options.optimized_model = dir_ / "m.onnx";
  EXPECT_EQ(nodes_written(options), 1);
  options.optimized_model_basic = true;
  EXPECT_EQ(nodes_written(options), 2);
  options.optimize = false;
  EXPECT_EQ(nodes_written(options), 4);
}

TEST_F(OptimizedModel, IsInOnnxRuntimesFormatByItsNameOrTheOption) {
  SessionOptions options;
  options.cache = false;
  options.optimized_model = dir_ / "m.ort";
  EXPECT_EQ(nodes_written(options), 1);
  EXPECT_EQ(MappedFile::open(options.optimized_model)->bytes()[4], std::byte{'O'});
  options.optimized_model = dir_ / "m.onnx";
  options.optimized_model_ort = true;
  EXPECT_EQ(nodes_written(options), 1);
  EXPECT_EQ(MappedFile::open(options.optimized_model)->bytes()[4], std::byte{'O'});
}

TEST_F(OptimizedModel, AFolderThatIsMissingIsAnError) {
  const std::string bytes = testing::model_bytes(kModel);
  SessionOptions options;
  options.optimized_model = dir_ / "no" / "m.onnx";
  EXPECT_THROW(Session::from_bytes(std::as_bytes(std::span(bytes)), options), Error);
}

}  // namespace
}  // namespace sdx
