/* Training for C: a part of <sdx/train.hpp>. Link libsdx_train. The rules of <sdx/sdx.h> apply: nothing throws, errors are
 * statuses with sdx_last_error(), and the caller frees objects. Use checkpoints and trainers from one thread at a time; a
 * trainer changes the checkpoint it was opened with, so the two count as one object. */
#ifndef SDX_TRAIN_H
#define SDX_TRAIN_H

#include <sdx/sdx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters, the optimizer's state and properties. A trainer keeps what it needs: its checkpoint may be freed before it. */
typedef struct sdx_checkpoint sdx_checkpoint;
typedef struct sdx_trainer sdx_trainer;

/* --- checkpoints ---------------------------------------------------------------------------------------------------------- */

/* Reads ONNX Runtime's and our own checkpoint files; the format is the same. Fails with SDX_IO, or with SDX_INVALID_MODEL and
 * the place of the damage. */
SDX_C_API sdx_status sdx_checkpoint_load(const char* path, sdx_checkpoint** out);
SDX_C_API sdx_status sdx_checkpoint_from_bytes(const void* bytes, size_t size, sdx_checkpoint** out);
/* A deep copy. */
SDX_C_API sdx_status sdx_checkpoint_clone(const sdx_checkpoint* checkpoint, sdx_checkpoint** out);
SDX_C_API void sdx_checkpoint_free(sdx_checkpoint* checkpoint);
/* Writes atomically: an existing file stays intact until the new one is complete. `optimizer` nonzero: include the optimizer's
 * state. */
SDX_C_API sdx_status sdx_checkpoint_save(const sdx_checkpoint* checkpoint, const char* path, int optimizer);

SDX_C_API size_t sdx_checkpoint_parameter_count(const sdx_checkpoint* checkpoint);
/* NULL when `index` is out of range. */
SDX_C_API const char* sdx_checkpoint_parameter_name(const sdx_checkpoint* checkpoint, size_t index);
/* 1: trained, 0: frozen, or no such index. */
SDX_C_API int sdx_checkpoint_parameter_trained(const sdx_checkpoint* checkpoint, size_t index);
/* A copy, which the caller frees. SDX_INVALID_ARGUMENT, with the nearest name, if there is no such parameter. */
SDX_C_API sdx_status sdx_checkpoint_get(const sdx_checkpoint* checkpoint, const char* name, sdx_tensor** out);
/* Copies the values. `tensor` must have the parameter's type and shape. */
SDX_C_API sdx_status sdx_checkpoint_set(sdx_checkpoint* checkpoint, const char* name, const sdx_tensor* tensor);

/* Custom values, by name. Setting one replaces it, whatever its type. */
SDX_C_API size_t sdx_checkpoint_property_count(const sdx_checkpoint* checkpoint);
SDX_C_API const char* sdx_checkpoint_property_name(const sdx_checkpoint* checkpoint, size_t index);
SDX_C_API sdx_status sdx_checkpoint_set_int(sdx_checkpoint* checkpoint, const char* name, int64_t value);
SDX_C_API sdx_status sdx_checkpoint_set_float(sdx_checkpoint* checkpoint, const char* name, float value);
SDX_C_API sdx_status sdx_checkpoint_set_string(sdx_checkpoint* checkpoint, const char* name, const char* value);
/* SDX_INVALID_ARGUMENT if there is none or it has another type. The string lives until the property changes. */
SDX_C_API sdx_status sdx_checkpoint_get_int(const sdx_checkpoint* checkpoint, const char* name, int64_t* value);
SDX_C_API sdx_status sdx_checkpoint_get_float(const sdx_checkpoint* checkpoint, const char* name, float* value);
SDX_C_API sdx_status sdx_checkpoint_get_string(const sdx_checkpoint* checkpoint, const char* name, const char** value);

/* The elements of all parameters, concatenated, float32. `frozen` 0: only the trained ones. `count` must be
 * sdx_checkpoint_size(). */
SDX_C_API size_t sdx_checkpoint_size(const sdx_checkpoint* checkpoint, int frozen);
SDX_C_API sdx_status sdx_checkpoint_to_buffer(const sdx_checkpoint* checkpoint, int frozen, float* buffer, size_t count);
SDX_C_API sdx_status sdx_checkpoint_from_buffer(sdx_checkpoint* checkpoint, int frozen, const float* buffer, size_t count);

/* New checkpoints: a minus b; base plus `factor` times delta; the weighted mean, with weights normalised to a sum of 1
 * (`weights` NULL: equal weights). */
SDX_C_API sdx_status sdx_checkpoint_difference(const sdx_checkpoint* a, const sdx_checkpoint* b, sdx_checkpoint** out);
SDX_C_API sdx_status sdx_checkpoint_sum(const sdx_checkpoint* base, const sdx_checkpoint* delta, double factor,
                                        sdx_checkpoint** out);
SDX_C_API sdx_status sdx_checkpoint_average(const sdx_checkpoint* const* checkpoints, size_t count, const double* weights,
                                            sdx_checkpoint** out);

/* --- training ------------------------------------------------------------------------------------------------------------- */

/* `artifacts`: a folder with training_model.onnx and its like, or that file. `settings`: key=value, separated by commas, or NULL:
 * optimizer (adamw, adam, sgd, rmsprop, adagrad, lion; without it, optimizer_model.onnx says), learning_rate, weight_decay,
 * beta1, beta2, epsilon, momentum, clip_norm, schedule (constant, linear, cosine), warmup, total, accumulate, threads, seed,
 * bfloat16 (0 or 1), refuse_non_finite (1 or 0). SDX_INVALID_ARGUMENT for others. */
SDX_C_API sdx_status sdx_trainer_open(const char* artifacts, sdx_checkpoint* checkpoint, const char* settings, sdx_trainer** out);
SDX_C_API void sdx_trainer_free(sdx_trainer* trainer);

/* Inputs (labels among them) and outputs (the loss first) of the training model. NULL if `index` is out of range. */
SDX_C_API size_t sdx_trainer_input_count(const sdx_trainer* trainer);
SDX_C_API const char* sdx_trainer_input_name(const sdx_trainer* trainer, size_t index);
SDX_C_API size_t sdx_trainer_output_count(const sdx_trainer* trainer);
SDX_C_API const char* sdx_trainer_output_name(const sdx_trainer* trainer, size_t index);

/* Trains on one batch: forward, backward, update. `inputs` follow the order of the names. `loss` (may be NULL) is the loss
 * before the update. With refuse_non_finite, SDX_RUNTIME_FAILURE for a
 * loss or a gradient that is not finite; nothing is changed then. */
SDX_C_API sdx_status sdx_trainer_train_step(sdx_trainer* trainer, const sdx_tensor* const* inputs, size_t count, float* loss);
/* An output of the last step, as a new tensor. */
SDX_C_API sdx_status sdx_trainer_last_output(const sdx_trainer* trainer, size_t index, sdx_tensor** out);
/* Returns the eval model's outputs as new tensors, at most `capacity`; `made` receives their number. */
SDX_C_API sdx_status sdx_trainer_eval_step(sdx_trainer* trainer, const sdx_tensor* const* inputs, size_t count,
                                           sdx_tensor** outputs, size_t capacity, size_t* made);

SDX_C_API float sdx_trainer_learning_rate(const sdx_trainer* trainer);
/* Overrides the schedule from now on. */
SDX_C_API sdx_status sdx_trainer_set_learning_rate(sdx_trainer* trainer, float rate);
SDX_C_API int64_t sdx_trainer_steps(const sdx_trainer* trainer); /* updates */

/* Includes the optimizer's state: training resumed from it continues with the same losses. */
SDX_C_API sdx_status sdx_trainer_save_checkpoint(const sdx_trainer* trainer, const char* path);
/* Writes an inference model with these outputs of the eval model, or intermediate values of its loss. */
SDX_C_API sdx_status sdx_trainer_export(const sdx_trainer* trainer, const char* path, const char* const* outputs, size_t count);

#ifdef __cplusplus
}
#endif

#endif
