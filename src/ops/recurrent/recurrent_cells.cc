// LSTM, GRU, RNN: ai.onnx 1, 3 (GRU: linear_before_reset), 7, 14 (layout), 22 (bfloat16).

#include "ops/op.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/signatures.h"

namespace sdx::ops {
namespace {

template <Cell kCell>
void add_cell(OpTable& t, const char* name) {
  const TypeSet f = types::floats;
  OpDef d(name, 1);
  d.in("X W R", "T", f).in("B", "T", f, Arity::optional);
  d.in("sequence_lens", "", bit(DataType::int32), Arity::optional).in("initial_h", "T", f, Arity::optional);
  d.out("Y Y_h", "T", f, Arity::optional);
  d.attrs<RecurrentFields>();
  if (kCell == Cell::lstm) {
    d.in("initial_c P", "T", f, Arity::optional).out("Y_c", "T", f, Arity::optional);
  }
  t.add(std::move(d).infer_with([](InferContext& c) { infer_recurrent(c, kCell); }).run_with([](OpContext& c) {
    run_recurrent(c, kCell);
  }));
}

}  // namespace

void register_recurrent_cells(OpTable& t) {
  add_cell<Cell::lstm>(t, "LSTM");
  add_cell<Cell::gru>(t, "GRU");
  add_cell<Cell::rnn>(t, "RNN");
}

}  // namespace sdx::ops
