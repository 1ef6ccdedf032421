// Trains a classifier of points, and goes on from its checkpoint where an earlier run was stopped.
//
//   sdx_example_train_epochs ARTIFACTS CHECKPOINT [EPOCHS]
//
// ARTIFACTS is a folder that `sdx artifacts` wrote for a model that takes float32[N,2] and gives scores of three classes.

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>
#include <sdx/train.hpp>

namespace {

// A class for each sector of a circle.
std::unique_ptr<sdx::train::Dataset> points(std::int64_t count, unsigned seed) {
  sdx::Tensor x(sdx::DataType::float32, {count, 2}), labels(sdx::DataType::int64, {count});
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const float a = uniform(rng), b = uniform(rng);
    x.mutable_values<float>()[2 * i] = a;
    x.mutable_values<float>()[2 * i + 1] = b;
    labels.mutable_values<std::int64_t>()[i] = a > 0 ? 0 : b > 0 ? 1 : 2;
  }
  return sdx::train::dataset_of({x, labels});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " ARTIFACTS CHECKPOINT [EPOCHS]\n";
    return 2;
  }
  try {
    using namespace sdx::train;
    const std::filesystem::path artifacts = argv[1], checkpoint = argv[2];
    CheckpointState state = CheckpointState::load(std::filesystem::exists(checkpoint) ? checkpoint : artifacts / "checkpoint");
    TrainerOptions how;
    how.learning_rate = 0.01F;
    Trainer trainer(artifacts, state, how);

    FitOptions options;
    options.epochs = argc > 3 ? std::atoi(argv[3]) : 5;
    options.batch = 20;
    options.checkpoint = checkpoint;
    options.resume = true;
    FitCallbacks callbacks;
    callbacks.epoch = [](const FitEpoch& e) {
      std::cout << "epoch " << e.epoch + 1 << ": loss " << e.loss << ", on other points " << e.validation_loss << '\n';
    };
    const auto data = points(600, 1), others = points(200, 2);
    const FitResult result = fit(trainer, *data, others.get(), options, callbacks);
    std::cout << result.batches << " batches, the best epoch was " << result.best_epoch + 1 << '\n';
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return 1;
  }
}
