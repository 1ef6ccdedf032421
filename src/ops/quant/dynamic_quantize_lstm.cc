// DynamicQuantizeLSTM: com.microsoft 1. W is [directions, input, 4 * hidden] and R [directions, hidden, 4 * hidden]: the
// transposed of LSTM's. The weights are dequantised. As in ONNX Runtime, the input up to the end of the longest sequence is
// rounded to one dynamic 8-bit grid, and the hidden states before each step to others: see states_share_grid().

#include <algorithm>

#include "ops/op.h"
#include "ops/quant/dynamic_quant.h"
#include "ops/quant/quant_codec.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
constexpr TypeSet kFloat = bit(DataType::float32);

enum In : std::size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kP, kWScale, kWZero, kRScale, kRZero };

void infer_dynamic_lstm(InferContext& c) {
  const std::int64_t hidden = parse<RecurrentFields>(c).hidden_size;
  const std::int64_t directions = read_recurrent_attrs(c.node(), Cell::lstm).directions();
  const SymShape* x = c.shape(kX);
  const SymShape* r = c.shape(kR);
  if (x != nullptr && x->size() != 3) c.fail("X must be [length, batch, input], received {}", to_string(*x));
  if (r != nullptr && r->size() != 3) c.fail("R must be [directions, hidden, 4 * hidden], received {}", to_string(*r));
  const Dim h = hidden > 0 ? Dim(hidden) : r != nullptr ? (*r)[1] : Dim::unknown();
  const Dim length = x != nullptr ? (*x)[0] : Dim::unknown();
  const Dim batch = x != nullptr ? (*x)[1] : Dim::unknown();
  c.output(0, DataType::float32, SymShape{length, directions, batch, h});
  c.output(1, DataType::float32, SymShape{directions, batch, h});
  c.output(2, DataType::float32, SymShape{directions, batch, h});
}

// [directions, rows, columns] of bytes to [directions, columns, rows] of floats.
Tensor dequantise(const OpContext& c, std::size_t weights, std::size_t scale, std::size_t zero) {
  const Tensor& w = c.input(weights);
  const Tensor& s = c.input(scale);
  const Tensor& z = c.input(zero);
  if (w.rank() != 3) c.fail("input {} must have 3 axes, received {}", weights, to_string(w.shape()));
  const std::int64_t directions = w.dim(0);
  const std::int64_t rows = w.dim(1);
  const std::int64_t columns = w.dim(2);
  const bool per_column = s.size() != directions;
  if (s.size() != z.size() || z.dtype() != w.dtype() || (per_column && s.size() != directions * columns)) {
    c.fail("input {} of shape {} needs a scale and a zero point per direction or per column, received {} and {}", weights,
           to_string(w.shape()), s.type_string(), z.type_string());
  }
  const std::vector<float> scales = decode_floats(s);
  const std::vector<std::int32_t> zeros = decode_ints(z);
  const std::vector<std::int32_t> values = decode_ints(w);
  Tensor out(DataType::float32, {directions, columns, rows});
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto p = static_cast<std::size_t>(per_column ? d * columns + j : d);
      for (std::int64_t i = 0; i < rows; ++i) {
        *to++ = static_cast<float>(values[static_cast<std::size_t>((d * rows + i) * columns + j)] - zeros[p]) * scales[p];
      }
    }
  }
  return out;
}

void round_values(float* values, std::int64_t count) {
  const DynamicScale q = dynamic_scale(values, count, DataType::uint8);
  const QuantRange range = quant_range(DataType::uint8);
  std::transform(values, values + count, values, [&](float v) {
    return static_cast<float>(requantize(v / q.scale, q.zero_point, range) - q.zero_point) * q.scale;
  });
}

void round_states(float* states, std::int64_t rows, std::int64_t hidden, std::int64_t batch) {
  if (states_share_grid(batch, hidden)) return round_values(states, rows * hidden);
  for (std::int64_t i = 0; i < rows; ++i) round_values(states + i * hidden, hidden);
}

// Steps behind the end of the longest sequence stay as they are: nothing reads them.
Tensor rounded(const OpContext& c) {
  const Tensor& x = c.input(kX);
  if (x.rank() != 3) c.fail("X must be [length, batch, input], received {}", to_string(x.shape()));
  std::int64_t steps = x.dim(0);
  if (const Tensor* lengths = c.optional_input(kLengths); lengths != nullptr && lengths->size() > 0) {
    const std::vector<std::int64_t> all = to_ints(*lengths);
    steps = std::clamp<std::int64_t>(*std::max_element(all.begin(), all.end()), 0, steps);
  }
  Tensor out(DataType::float32, x.shape());
  const auto in = x.values<float>();
  const auto to = out.mutable_values<float>();
  std::copy(in.begin(), in.end(), to.begin());
  round_values(to.data(), steps * x.dim(1) * x.dim(2));
  return out;
}

void run_dynamic_lstm(OpContext& c) {
  Node node = c.node();
  node.op_type = "LSTM";
  node.domain = "";
  node.version = 14;
  const Value x(rounded(c));
  const Value w(dequantise(c, kW, kWScale, kWZero));
  const Value r(dequantise(c, kR, kRScale, kRZero));
  std::vector<const Value*> inputs{&x, &w, &r};
  for (std::size_t i = kB; i <= kP; ++i) inputs.push_back(c.has_input(i) ? &c.input_value(i) : nullptr);
  node.inputs.resize(inputs.size());
  std::vector<Value> results(3);
  std::vector<Value*> outputs{&results[0], &results[1], &results[2]};
  OpContext inner(node, inputs, outputs, c.services());
  run_recurrent(inner, Cell::lstm, round_states);
  for (std::size_t i = 0; i < results.size(); ++i) c.set_output(i, std::move(results[i]));
}

}  // namespace

void register_dynamic_quantize_lstm(OpTable& t) {
  OpDef def("com.microsoft", "DynamicQuantizeLSTM", 1);
  def.in("X", "T", kFloat).in("W R", "T2", kBytes).in("B", "T", kFloat, Arity::optional);
  def.in("sequence_lens", "", bit(DataType::int32), Arity::optional).in("initial_h", "T", kFloat, Arity::optional);
  def.in("initial_c P", "T", kFloat, Arity::optional);
  def.in("W_scale", "T", kFloat).in("W_zero_point", "T2", kBytes).in("R_scale", "T", kFloat).in("R_zero_point", "T2", kBytes);
  def.out("Y Y_h Y_c", "T", kFloat, Arity::optional);
  def.attrs<RecurrentFields>();
  t.add(std::move(def).infer_with(infer_dynamic_lstm).run_with(run_dynamic_lstm));
}

}  // namespace sdx::ops
