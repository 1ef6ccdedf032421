"""BeamSearch, GreedySearch, Sampling and WhisperBeamSearch over tiny decoders."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

f32, i32 = np.float32, np.int32
VOCAB, HIDDEN, HEADS = 12, 8, 2
INFO = helper.make_tensor_value_info
OPSETS = {"": 21, "com.microsoft": 1}
TOL = (1e-3, 1e-4)


def weights(r, **shapes):
    return [numpy_helper.from_array(r.normal(*s), n) for n, s in shapes.items()]


def ms(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, domain="com.microsoft", **attrs)


def gpt(r, vocab=VOCAB):
    """One layer: embeddings, attention over the cache, a projection."""
    w = weights(r, wte=(vocab, HIDDEN), wpe=(32, HIDDEN), qkv=(HIDDEN, 3 * HIDDEN), qkv_b=(3 * HIDDEN,), head=(HIDDEN, vocab))
    n = [helper.make_node("Gather", ["wte", "input_ids"], ["e"]), helper.make_node("Gather", ["wpe", "position_ids"], ["p"]),
         helper.make_node("Add", ["e", "p"], ["x"]),
         ms("Attention", ["x", "qkv", "qkv_b", "attention_mask", "past_0"], ["a", "present_0"], num_heads=HEADS, unidirectional=1),
         helper.make_node("Add", ["x", "a"], ["h"]), helper.make_node("MatMul", ["h", "head"], ["logits"])]
    cache = [2, "batch", HEADS, "past", HIDDEN // HEADS]
    ins = [INFO("input_ids", T.INT32, ["batch", "seq"]), INFO("position_ids", T.INT32, ["batch", "seq"]),
           INFO("attention_mask", T.INT32, ["batch", "total"]), INFO("past_0", T.FLOAT, cache)]
    outs = [INFO("logits", T.FLOAT, ["batch", "seq", vocab]), INFO("present_0", T.FLOAT, [2, "batch", HEADS, "total", HIDDEN // HEADS])]
    return helper.make_graph(n, "gpt", ins, outs, w)


def cross_names(kind):
    return [f"{kind}_key_cross_0", f"{kind}_value_cross_0"]


def self_names(kind):
    return [f"{kind}_key_self_0", f"{kind}_value_self_0"]


def layer(mask, cross):
    """Self attention with the cache, then cross attention over what the encoder gave."""
    node = helper.make_node
    return [node("Gather", ["wte", "tokens"], ["x"]), node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]),
            node("MatMul", ["x", "wv"], ["v"]),
            ms("MultiHeadAttention", ["q", "k", "v", "", "", "", *self_names("past")], ["a", *self_names("present")], num_heads=HEADS, unidirectional=1),
            node("Add", ["x", "a"], ["y"]), node("MatMul", ["y", "cq"], ["cross_q"]),
            ms("MultiHeadAttention", ["cross_q", *cross, "", mask], ["c"], num_heads=HEADS), node("Add", ["y", "c"], ["z"]),
            node("MatMul", ["z", "head"], ["logits"])]


def decoder_weights(r):
    h = (HIDDEN, HIDDEN)
    return weights(r, wte=(VOCAB, HIDDEN), wq=h, wk=h, wv=h, cq=h, head=(HIDDEN, VOCAB))


def caches(kind, names, length):
    return [INFO(n, T.FLOAT, ["batch", HEADS, length, HIDDEN // HEADS]) for n in names]


def encoder(r, shared, mask, speech=False):
    """With the decoder's first step: its cache is empty."""
    node = helper.make_node
    h = (HIDDEN, HIDDEN)
    n = [node("Transpose", ["encoder_input_ids"], ["encoder_hidden_states"], perm=[0, 2, 1])] if speech else \
        [node("Gather", ["enc_wte", "encoder_input_ids"], ["encoder_hidden_states"])]
    for which in ("key", "value"):
        n += [node("MatMul", ["encoder_hidden_states", f"enc_{which}"], [f"flat_{which}"]),
              node("Reshape", [f"flat_{which}", "split"], [f"split_{which}"]),
              node("Transpose", [f"split_{which}"], [f"present_{which}_cross_0"], perm=[0, 2, 1, 3])]
    n += [node("Shape", ["decoder_input_ids"], ["batch"], start=0, end=1), node("Concat", ["batch", "rest"], ["empty_shape"], axis=0),
          node("ConstantOfShape", ["empty_shape"], ["past_key_self_0"]), node("Identity", ["past_key_self_0"], ["past_value_self_0"]),
          node("Identity", ["decoder_input_ids"], ["tokens"])]
    n += layer("encoder_attention_mask" if mask else "", cross_names("present"))
    w = [*shared, *weights(r, enc_wte=(VOCAB, HIDDEN), enc_key=h, enc_value=h), numpy_helper.from_array(np.array([0, 0, HEADS, HIDDEN // HEADS]), "split"),
         numpy_helper.from_array(np.array([HEADS, 0, HIDDEN // HEADS]), "rest")]
    ins = [INFO("encoder_input_ids", T.FLOAT, ["batch", HIDDEN, "frames"]) if speech else INFO("encoder_input_ids", T.INT32, ["batch", "length"])]
    ins += [INFO("encoder_attention_mask", T.INT32, ["batch", "length"])] if mask else []
    ins += [INFO("decoder_input_ids", T.INT32, ["batch", "seq" if speech else 1])]
    outs = [INFO("logits", T.FLOAT, ["batch", "seq" if speech else 1, VOCAB]), INFO("encoder_hidden_states", T.FLOAT, ["batch", "length", HIDDEN]),
            *caches("present", self_names("present"), "seq" if speech else 1), *caches("present", cross_names("present"), "length")]
    return helper.make_graph(n, "encoder", ins, outs, w)


def decoder(shared, mask, points=False):
    """`points`: as pointer generators do, it prefers tokens of the encoder's input, which it gets too."""
    n = [helper.make_node("Identity", ["input_ids"], ["tokens"]), *layer("encoder_attention_mask" if mask else "", cross_names("past"))]
    ins = [INFO("input_ids", T.INT32, ["batch", 1])]
    if points:
        n[-1].output[0] = "plain"
        where = numpy_helper.from_array(np.arange(VOCAB, dtype=i32).reshape(1, 1, VOCAB), "every_token")
        shared = [*shared, where, numpy_helper.from_array(np.array([2]), "last"), numpy_helper.from_array(np.array([1]), "middle"),
                  numpy_helper.from_array(np.array(1.5, f32), "much")]
        n += [helper.make_node("Unsqueeze", ["encoder_input_ids", "last"], ["columns"]), helper.make_node("Equal", ["columns", "every_token"], ["same"]),
              helper.make_node("Cast", ["same"], ["ones"], to=T.FLOAT), helper.make_node("ReduceMax", ["ones", "middle"], ["there"], keepdims=1),
              helper.make_node("Mul", ["there", "much"], ["more"]), helper.make_node("Add", ["plain", "more"], ["logits"])]
        ins += [INFO("encoder_input_ids", T.INT32, ["batch", "length"])]
    ins += [INFO("encoder_attention_mask", T.INT32, ["batch", "length"])] if mask else []
    ins += [*caches("past", self_names("past"), "past"), *caches("past", cross_names("past"), "length")]
    outs = [INFO("logits", T.FLOAT, ["batch", 1, VOCAB]), *caches("present", self_names("present"), "total")]
    return helper.make_graph(n, "decoder", ins, outs, shared)


def search(r, op, name, graphs, inputs, outputs, types=None, **attrs):
    if "BeamSearch" in op:  # ONNX Runtime wants these to be there
        inputs = inputs + [None] * (7 - len(inputs))
        inputs = [x if x is not None else {2: number(0), 5: number(1.0, f32), 6: number(1.0, f32)}.get(i) for i, x in enumerate(inputs)]
    feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    ins = [INFO(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    attrs = {**attrs, **graphs}
    outs = [f"y{i}" if wanted else "" for i, wanted in enumerate(outputs)]
    infos = [INFO(o, T.INT32 if i == 0 else T.FLOAT, None) for i, o in enumerate(outs) if o]
    r.model(f"{op} {name}", helper.make_graph([ms(op, names, outs, **attrs)], "case", ins, infos), feeds, OPSETS, tolerance=TOL)


def number(x, kind=i32):
    return None if x is None else np.array([x], kind)


def gpt_search(r):
    ids = np.array([[3, 5, 7], [0, 2, 9]], i32)
    tokens = dict(eos_token_id=11, pad_token_id=0)

    def beams(name, prompt=ids, most=9, least=None, beams=3, returned=2, penalty=None, repeat=None, mask=None, prefix=None, attention=None,
              outputs=(1, 1), **attrs):
        search(r, "BeamSearch", name, {"decoder": gpt(r)},
               [prompt, number(most), number(least), number(beams), number(returned), number(penalty, f32), number(repeat, f32), mask, prefix, attention],
               outputs, **{**tokens, **attrs})

    one = ids[:1]
    for seed in range(3):
        beams(f"model {seed}", prompt=one)
    beams("two prompts, one padded")
    beams("scores of steps", prompt=one, outputs=(1, 1, 1))
    beams("one beam", beams=1, returned=1)
    beams("early stopping", prompt=one, early_stopping=1, most=12)
    beams("length penalty", prompt=one, penalty=2.0)
    beams("shorter preferred", prompt=one, penalty=-1.0)
    beams("min_length", prompt=one, least=8, most=12)
    beams("repetition penalty", prompt=one, repeat=1.75)
    beams("no repeated pairs", prompt=one, no_repeat_ngram_size=2, most=12)
    mask = np.ones(VOCAB, i32)
    mask[[1, 4, 6]] = 0
    beams("vocab_mask", prompt=one, mask=mask)
    beams("prefix_vocab_mask", prefix=np.stack([mask, 1 - mask]), beams=2)
    beams("attention_mask", attention=np.array([[0, 1, 1], [1, 1, 1]], i32))
    beams("one new token", prompt=one, most=4)
    search(r, "BeamSearch", "first step of its own", {"decoder": gpt(r), "init_decoder": gpt(r)}, [one, number(8), None, number(2), number(1)], (1, 1), **tokens)

    def greedy(name, prompt=ids, most=9, least=None, repeat=None, mask=None, prefix=None, **attrs):
        search(r, "GreedySearch", name, {"decoder": gpt(r)}, [prompt, number(most), number(least), number(repeat, f32), mask, prefix], (1,),
               **{**tokens, **attrs})

    for seed in range(3):
        greedy(f"model {seed}")
    greedy("ends early", prompt=one, most=20, eos_token_id=4)
    greedy("min_length, repetition penalty", least=9, repeat=1.5, most=12)
    greedy("no repeated pairs, masks", no_repeat_ngram_size=2, most=12, mask=mask, prefix=np.stack([mask, mask]))
    # Whatever the random numbers are, only one token is left to draw.
    for name, attrs in (("likeliest", {"top_p": 0.0}), ("likeliest, temperature", {"temperature": 0.5}), ("likeliest, counted down", {"custom": 1})):
        search(r, "Sampling", name, {"decoder": gpt(r)}, [ids, number(9), None, number(1.25, f32)], (1,), min_tokens_to_keep=1, **tokens, **attrs)


def t5_search(r):
    ids = np.array([[3, 5, 7, 1], [0, 2, 9, 4]], i32)
    tokens = dict(eos_token_id=1, pad_token_id=0, decoder_start_token_id=0, model_type=1)
    for name, prompt, count, returned, most in (("T5", ids[:1], 3, 2, 8), ("T5, two inputs", ids, 2, 2, 8), ("T5, one beam", ids, 1, 1, 9)):
        shared = decoder_weights(r)
        search(r, "BeamSearch", name, {"decoder": decoder(shared, True), "encoder": encoder(r, shared, True)},
               [prompt, number(most), None, number(count), number(returned), number(1.0, f32), number(1.0, f32)], (1, 1), **tokens)
    features = r.normal(1, HIDDEN, 5)
    tokens = dict(eos_token_id=11, pad_token_id=0, decoder_start_token_id=2, model_type=2)
    for op in ("BeamSearch", "WhisperBeamSearch"):
        shared = decoder_weights(r)
        search(r, op, "Whisper", {"decoder": decoder(shared, False), "encoder": encoder(r, shared, False, True)},
               [features, number(9), None, number(3), number(2), number(1.0, f32), number(1.0, f32), None, None, None, np.array([[2, 5, 4]], i32)], (1, 1), **tokens)
        if op == "WhisperBeamSearch":
            times = dict(beginning_timestamp_token_id=7, no_timestamps_token_id=6, start_of_lm_token_id=5, translate_token_id=4, transcribe_token_id=3)
            for n in range(6):
                shared = decoder_weights(r)
                start = np.array([[2, 7]] if n % 2 else [[2, 5, 4]], i32)
                search(r, op, f"Whisper, time stamps, model {n}", {"decoder": decoder(shared, False), "encoder": encoder(r, shared, False, True)},
                       [features, number(12), None, number(3), number(2), number(1.0, f32), number(1.0, f32), None, None, None, start, number(1)], (1, 1),
                       **times, **{**tokens, "eos_token_id": 1})
            search(r, op, "Whisper, no speech", {"decoder": decoder(shared, False), "encoder": encoder(r, shared, False, True)},
                   [features, number(9), None, number(2), number(1), number(1.0, f32), number(1.0, f32), None, None, None, np.array([[2]], i32)],
                   (1, 1, 0, 0, 1), no_speech_token_id=7, **tokens)


def pointer_search(r):
    ids = np.array([[3, 5, 7, 1], [0, 2, 9, 4]], i32)
    tokens = dict(eos_token_id=1, pad_token_id=0, decoder_start_token_id=0, model_type=1)
    for name, prompt, count, returned in (("T5 that points", ids[:1], 3, 2), ("T5 that points, two inputs", ids, 3, 3)):
        shared = decoder_weights(r)
        search(r, "BeamSearch", name, {"decoder": decoder(shared, True, True), "encoder": encoder(r, shared, True)},
               [prompt, number(8), None, number(count), number(returned), number(1.0, f32), number(1.0, f32)], (1, 1), **tokens)


def refusals(r):
    def text(op="GreedySearch", inputs="i, m", values=(("i: int32[1,2]", "1 2"), ("m: int32[1]", "5")), attrs="", outputs="x, c", cache="2,n,1,p,1"):
        return "\n".join([*(f"input {n} = {v}" for n, v in values), f"y = com.microsoft.{op}({inputs}) {{eos_token_id=1, pad_token_id=0{attrs}}}", "  decoder {",
                          "    input input_ids: int32[n,s]", f"    input past_0: float32[{cache}]", "    constant w: float32[1,1,3] 1 2 3",
                          "    f = Cast(input_ids) {to=1}", "    constant axis: int64[1] 2", "    u = Unsqueeze(f, axis)",
                          "    x = Mul(u, w)", "    c = Identity(past_0)", f"    output {outputs.split(', ')[0]}", *(f"    output {o}" for o in outputs.split(", ")[1:]), "  }",
                          "output y"])

    r.fails("GreedySearch", text(values=(("i: int32[1,2]", "1 2"), ("m: int32[1]", "2"))), "max_length is 2")
    r.fails("GreedySearch", text(values=(("i: int32[1,2]", "1 2"), ("m: int32[1]", "2000000000"))), "expected 1 to")
    r.fails("GreedySearch", text(values=(("i: int64[1,2]", "1 2"), ("m: int32[1]", "5"))), "input")
    r.fails("GreedySearch", text(outputs="x"), "must give logits and 1 caches")
    r.fails("GreedySearch", text(cache="2,n,h,p,1"), "must declare its heads")
    r.fails("GreedySearch", text(attrs=", model_type=1"), "model_type")
    r.fails("GreedySearch", text(attrs=", no_repeat_ngram_size=1", values=(("i: int32[1,2]", "1 -7"), ("m: int32[1]", "5"))), "token -7 is outside the vocabulary")
    beams = (("i: int32[1,2]", "1 2"), ("m: int32[1]", "5"), ("b: int32[1]", "2"), ("k: int32[1]", "3"))
    r.fails("BeamSearch", text("BeamSearch", "i, m, _, b, k", beams), "num_return_sequences is 3; expected 1 to 2")
    r.fails("BeamSearch", text("BeamSearch", "i, m, _, b, b", beams, ", vocab_size=1"), "1 tokens to choose from")
    r.fails("BeamSearch", text("BeamSearch", "i, m, _, b, b", beams, ", model_type=1"), "encoder")


CASES = [gpt_search, t5_search, pointer_search, refusals]
