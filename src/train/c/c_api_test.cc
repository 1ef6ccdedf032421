#include <gtest/gtest.h>
#include <sdx/train.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/training_models.h"

namespace {

namespace fs = std::filesystem;

struct Checkpoint {
  sdx_checkpoint* value = nullptr;
  Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint() { sdx_checkpoint_free(value); }
  std::vector<float> all() const {
    std::vector<float> buffer(sdx_checkpoint_size(value, 1));
    EXPECT_EQ(sdx_checkpoint_to_buffer(value, 1, buffer.data(), buffer.size()), SDX_OK) << sdx_last_error();
    return buffer;
  }
};

class TrainC : public ::testing::Test {
 protected:
  void SetUp() override {
    sdx::train::test::state().save(path_);
    ASSERT_EQ(sdx_checkpoint_load(path_.c_str(), &c.value), SDX_OK) << sdx_last_error();
  }

  const sdx::testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  const std::string path_ = folder_ / "checkpoint";
  Checkpoint c;
};

TEST_F(TrainC, Parameters) {
  ASSERT_GT(sdx_checkpoint_parameter_count(c.value), 1U);
  const char* name = sdx_checkpoint_parameter_name(c.value, 0);
  EXPECT_EQ(sdx_checkpoint_parameter_trained(c.value, 0), 1);
  EXPECT_EQ(sdx_checkpoint_parameter_name(c.value, 99), nullptr);
  EXPECT_EQ(sdx_checkpoint_parameter_trained(c.value, 99), 0);

  sdx_tensor* held = nullptr;
  ASSERT_EQ(sdx_checkpoint_get(c.value, name, &held), SDX_OK);
  std::vector<float> values(sdx_tensor_count(held), 7);
  sdx_tensor* given = nullptr;
  ASSERT_EQ(sdx_tensor_wrap(1, sdx_tensor_shape(held), sdx_tensor_rank(held), values.data(), values.size() * 4, &given), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_set(c.value, name, given), SDX_OK);
  EXPECT_EQ(c.all()[0], 7);
  sdx_tensor_free(given);
  const int64_t none = 0;
  ASSERT_EQ(sdx_tensor_create(1, &none, 1, nullptr, 0, &given), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_set(c.value, name, given), SDX_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sdx_last_error()).find("received float32[0]"), std::string::npos) << sdx_last_error();
  sdx_tensor_free(given);
  sdx_tensor_free(held);
  EXPECT_EQ(sdx_checkpoint_get(c.value, "nobody", &held), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(held, nullptr);
}

TEST_F(TrainC, Properties) {
  EXPECT_EQ(sdx_checkpoint_set_int(c.value, "epoch", 3), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_set_float(c.value, "best", 0.5F), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_set_string(c.value, "note", "text"), SDX_OK);
  ASSERT_EQ(sdx_checkpoint_save(c.value, path_.c_str(), 0), SDX_OK);
  Checkpoint back;
  ASSERT_EQ(sdx_checkpoint_load(path_.c_str(), &back.value), SDX_OK);
  int64_t epoch = 0;
  float best = 0;
  const char* note = nullptr;
  EXPECT_EQ(sdx_checkpoint_get_int(back.value, "epoch", &epoch), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_get_float(back.value, "best", &best), SDX_OK);
  EXPECT_EQ(sdx_checkpoint_get_string(back.value, "note", &note), SDX_OK);
  EXPECT_EQ(epoch, 3);
  EXPECT_EQ(best, 0.5F);
  EXPECT_STREQ(note, "text");
  EXPECT_EQ(sdx_checkpoint_property_count(back.value), 3U);
  EXPECT_STREQ(sdx_checkpoint_property_name(back.value, 1), "epoch");
  EXPECT_EQ(sdx_checkpoint_property_name(back.value, 3), nullptr);
  EXPECT_EQ(sdx_checkpoint_get_float(back.value, "epoch", &best), SDX_INVALID_ARGUMENT);
  EXPECT_STREQ(sdx_last_error(), "property 'epoch' is not of type float");
  EXPECT_EQ(sdx_checkpoint_get_int(back.value, "none", &epoch), SDX_INVALID_ARGUMENT);
}

TEST_F(TrainC, BuffersAndArithmetic) {
  Checkpoint other, delta, made, mean;
  ASSERT_EQ(sdx_checkpoint_clone(c.value, &other.value), SDX_OK);
  std::vector<float> values = c.all();
  for (float& v : values) v += 2;
  ASSERT_EQ(sdx_checkpoint_from_buffer(other.value, 1, values.data(), values.size()), SDX_OK);
  ASSERT_EQ(sdx_checkpoint_difference(other.value, c.value, &delta.value), SDX_OK);
  ASSERT_EQ(sdx_checkpoint_sum(c.value, delta.value, 0.5, &made.value), SDX_OK);
  const sdx_checkpoint* both[] = {c.value, other.value};
  const double weights[] = {1, 1};
  ASSERT_EQ(sdx_checkpoint_average(both, 2, weights, &mean.value), SDX_OK);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(made.all()[i], values[i] - 1, 1e-6);
    EXPECT_NEAR(mean.all()[i], values[i] - 1, 1e-6);
  }
  EXPECT_EQ(sdx_checkpoint_from_buffer(other.value, 1, values.data(), 1), SDX_INVALID_ARGUMENT);
  sdx_checkpoint* none = other.value;
  EXPECT_EQ(sdx_checkpoint_average(both, 0, nullptr, &none), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(TrainC, NothingIsTakenForGranted) {
  sdx_checkpoint* none = nullptr;
  EXPECT_EQ(sdx_checkpoint_load(nullptr, &none), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_checkpoint_load(path_.c_str(), nullptr), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_checkpoint_load("none", &none), SDX_IO);
  EXPECT_EQ(sdx_checkpoint_from_bytes("nothing", 7, &none), SDX_INVALID_MODEL);
  EXPECT_EQ(sdx_checkpoint_save(nullptr, path_.c_str(), 0), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_checkpoint_parameter_count(nullptr), 0U);
  EXPECT_EQ(sdx_trainer_train_step(nullptr, nullptr, 0, nullptr), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_trainer_steps(nullptr), 0);
  sdx_checkpoint_free(nullptr);
  sdx_trainer_free(nullptr);
}

// The test's batches as the C interface's tensors.
struct Batch {
  std::vector<sdx_tensor*> tensors;
  explicit Batch(const std::vector<sdx::Tensor>& from) {
    for (const sdx::Tensor& t : from) {
      sdx_tensor* made = nullptr;
      EXPECT_EQ(sdx_tensor_create(static_cast<sdx_dtype>(t.dtype()), t.shape().data(), t.rank(), t.data(), t.bytes(), &made),
                SDX_OK);
      tensors.push_back(made);
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    for (sdx_tensor* t : tensors) sdx_tensor_free(t);
  }
};

TEST_F(TrainC, Trains) {
  sdx::train::test::training_model();
  const std::string artifacts = sdx::train::test::eval_model().parent_path();
  sdx_trainer* trainer = nullptr;
  EXPECT_EQ(sdx_trainer_open(artifacts.c_str(), c.value, "learning_rat=1", &trainer), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_trainer_open(artifacts.c_str(), c.value, "accumulate=0", &trainer), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_trainer_open(artifacts.c_str(), c.value, "optimizer=adamw,schedule=steep", &trainer), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(trainer, nullptr);
  ASSERT_EQ(sdx_trainer_open(artifacts.c_str(), c.value, "optimizer=adamw,learning_rate=0.05,clip_norm=10,threads=1", &trainer),
            SDX_OK)
      << sdx_last_error();
  const Batch batch(sdx::train::test::batch(16, 1));
  ASSERT_EQ(sdx_trainer_input_count(trainer), batch.tensors.size());
  EXPECT_NE(sdx_trainer_input_name(trainer, 0), nullptr);
  EXPECT_NE(sdx_trainer_output_name(trainer, 0), nullptr);
  EXPECT_EQ(sdx_trainer_output_name(trainer, sdx_trainer_output_count(trainer)), nullptr);

  float first = 0, last = 0;
  ASSERT_EQ(sdx_trainer_train_step(trainer, batch.tensors.data(), batch.tensors.size(), &first), SDX_OK) << sdx_last_error();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(sdx_trainer_train_step(trainer, batch.tensors.data(), batch.tensors.size(), &last), SDX_OK);
  }
  EXPECT_LT(last, first / 2);
  EXPECT_EQ(sdx_trainer_steps(trainer), 51);
  EXPECT_FLOAT_EQ(sdx_trainer_learning_rate(trainer), 0.05F);
  EXPECT_EQ(sdx_trainer_set_learning_rate(trainer, NAN), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_trainer_set_learning_rate(trainer, 0), SDX_OK);

  sdx_tensor *loss = nullptr, *outputs[4];
  ASSERT_EQ(sdx_trainer_last_output(trainer, 0, &loss), SDX_OK);
  EXPECT_EQ(static_cast<const float*>(sdx_tensor_data(loss))[0], last);
  sdx_tensor_free(loss);
  EXPECT_EQ(sdx_trainer_last_output(trainer, 99, &loss), SDX_INVALID_ARGUMENT);
  std::size_t made = 0;
  ASSERT_EQ(sdx_trainer_eval_step(trainer, batch.tensors.data(), batch.tensors.size(), outputs, 4, &made), SDX_OK);
  ASSERT_GE(made, 1U);
  EXPECT_LT(static_cast<const float*>(sdx_tensor_data(outputs[0]))[0], first / 2);
  for (std::size_t i = 0; i < made; ++i) sdx_tensor_free(outputs[i]);
  EXPECT_EQ(sdx_trainer_eval_step(trainer, batch.tensors.data(), 0, outputs, 4, &made), SDX_INVALID_ARGUMENT);

  ASSERT_EQ(sdx_trainer_save_checkpoint(trainer, path_.c_str()), SDX_OK) << sdx_last_error();
  const std::vector<float> trained = c.all();
  sdx_trainer_free(trainer);
  Checkpoint back;
  ASSERT_EQ(sdx_checkpoint_load(path_.c_str(), &back.value), SDX_OK);
  EXPECT_EQ(back.all(), trained);
}

TEST_F(TrainC, TheCheckpointMayGoFirst) {
  sdx::train::test::training_model();
  const std::string artifacts = sdx::train::test::eval_model().parent_path();
  sdx_trainer* trainer = nullptr;
  ASSERT_EQ(sdx_trainer_open(artifacts.c_str(), c.value, nullptr, &trainer), SDX_OK) << sdx_last_error();
  sdx_checkpoint_free(c.value);
  c.value = nullptr;
  const Batch batch(sdx::train::test::batch(4, 1));
  EXPECT_EQ(sdx_trainer_train_step(trainer, batch.tensors.data(), batch.tensors.size(), nullptr), SDX_OK) << sdx_last_error();
  sdx_trainer_free(trainer);
}

}  // namespace
