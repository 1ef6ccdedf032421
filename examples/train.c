/* Trains a classifier by the C interface, on points that are made up here: each class has its own middle.
 *
 *   sdx_example_train ARTIFACTS CHECKPOINT WIDTH CLASSES [STEPS [MODEL OUTPUT]]
 *
 * ARTIFACTS is a folder that `sdx artifacts` wrote for a model that takes float32[N,WIDTH] and gives scores of CLASSES. What was
 * trained goes to CHECKPOINT.trained; with MODEL, the trained model with that output of the forward model goes there, and the
 * checkpoint to MODEL.trained. */

#include <sdx/train.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, sdx_last_error());
  return 1;
}

/* Uniform from -1 to 1, the same everywhere. */
static float random_number(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void make_batch(float* x, int64_t* labels, int64_t width, int64_t classes, uint32_t* state) {
  for (int64_t i = 0; i < BATCH; ++i) {
    uint32_t middle;
    labels[i] = i % classes;
    middle = (uint32_t)labels[i] + 1;
    for (int64_t k = 0; k < width; ++k) x[i * width + k] = random_number(&middle) + 0.5f * random_number(state);
  }
}

static int train(sdx_trainer* trainer, int64_t width, int64_t classes, int steps) {
  float* x = malloc(sizeof(float) * BATCH * (size_t)width);
  int64_t labels[BATCH];
  const int64_t x_shape[] = {BATCH, width}, labels_shape[] = {BATCH};
  sdx_tensor *inputs[2] = {NULL, NULL}, *outputs[1] = {NULL};
  size_t made = 0;
  uint32_t state = 1;
  int status = x == NULL;
  /* The tensors refer to the arrays, which each batch fills anew. */
  if (status == 0 && (sdx_tensor_wrap(1, x_shape, 2, x, sizeof(float) * BATCH * (size_t)width, &inputs[0]) != SDX_OK ||
                      sdx_tensor_wrap(7, labels_shape, 1, labels, sizeof labels, &inputs[1]) != SDX_OK)) {
    status = failed("cannot make tensors");
  }
  for (int step = 0; status == 0 && step < steps; ++step) {
    float loss = 0;
    make_batch(x, labels, width, classes, &state);
    if (sdx_trainer_train_step(trainer, (const sdx_tensor* const*)inputs, 2, &loss) != SDX_OK) status = failed("cannot train");
    if (status == 0 && (step % 10 == 0 || step + 1 == steps)) printf("step %d: loss %.4f\n", step, loss);
  }
  if (status == 0) {
    make_batch(x, labels, width, classes, &state);
    if (sdx_trainer_eval_step(trainer, (const sdx_tensor* const*)inputs, 2, outputs, 1, &made) != SDX_OK || made != 1) {
      status = failed("cannot evaluate");
    } else {
      printf("on a batch not seen: loss %.4f\n", *(const float*)sdx_tensor_data(outputs[0]));
    }
  }
  sdx_tensor_free(outputs[0]);
  sdx_tensor_free(inputs[0]);
  sdx_tensor_free(inputs[1]);
  free(x);
  return status;
}

int main(int argc, char** argv) {
  sdx_checkpoint* checkpoint = NULL;
  sdx_trainer* trainer = NULL;
  char name[4096];
  int status = 0;
  if (argc < 5 || atoi(argv[3]) < 1 || atoi(argv[4]) < 1) {
    fprintf(stderr, "usage: %s ARTIFACTS CHECKPOINT WIDTH CLASSES [STEPS [MODEL OUTPUT]]\n", argv[0]);
    return 2;
  }
  if (sdx_checkpoint_load(argv[2], &checkpoint) != SDX_OK) return failed("cannot load the checkpoint");
  if (sdx_trainer_open(argv[1], checkpoint, "learning_rate=0.001", &trainer) != SDX_OK) status = failed("cannot train");
  if (status == 0) status = train(trainer, atoi(argv[3]), atoi(argv[4]), argc > 5 ? atoi(argv[5]) : 50);
  snprintf(name, sizeof name, "%s.trained", argc > 7 ? argv[6] : argv[2]);
  if (status == 0 && argc > 7) {
    const char* output = argv[7];
    if (sdx_trainer_export(trainer, argv[6], &output, 1) != SDX_OK) status = failed(argv[6]);
  }
  if (status == 0 && sdx_trainer_save_checkpoint(trainer, name) != SDX_OK) status = failed(name);
  sdx_trainer_free(trainer);
  sdx_checkpoint_free(checkpoint);
  return status;
}
