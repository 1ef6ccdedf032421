"""A model of a billion random weights, of the shape of Llama 3.2 1B: `write_model`, and what a step of it reads.

    large.py decode FOLDER THREADS TOKENS    seconds for the tokens behind the first one, as JSON
"""

import json
import pathlib
import struct
import sys
import time

WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, FEED_FORWARD, VOCABULARY = 2048, 16, 32, 8, 64, 8192, 128256
MATRICES = {"self_attn.q_proj": (HEADS * HEAD, WIDTH), "self_attn.k_proj": (KV_HEADS * HEAD, WIDTH), "self_attn.v_proj": (KV_HEADS * HEAD, WIDTH),
            "self_attn.o_proj": (WIDTH, HEADS * HEAD), "mlp.gate_proj": (FEED_FORWARD, WIDTH), "mlp.up_proj": (FEED_FORWARD, WIDTH),
            "mlp.down_proj": (WIDTH, FEED_FORWARD)}  # fmt: skip


def shapes() -> dict:
    out = {"model.embed_tokens.weight": (VOCABULARY, WIDTH), "model.norm.weight": (WIDTH,)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        out |= {f"{at}{name}.weight": shape for name, shape in MATRICES.items()}
        out |= {f"{at}input_layernorm.weight": (WIDTH,), f"{at}post_attention_layernorm.weight": (WIDTH,)}
    return out


def write_model(folder: pathlib.Path) -> None:
    """As a folder of transformers, in bfloat16."""
    import numpy as np

    folder.mkdir()
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "intermediate_size": FEED_FORWARD,
              "vocab_size": VOCABULARY, "tie_word_embeddings": True, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
              "max_position_embeddings": 2048, "eos_token_id": 2}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    header, at = {}, 0
    for name, shape in shapes().items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": words}))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(1)
    some = (rng.standard_normal(1 << 22).astype(np.float32) * 0.02).view(np.uint32)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes().items():
            count = int(np.prod(shape))
            if len(shape) == 1:
                file.write(np.full(count, 0x3F80, np.uint16).tobytes())
            for begin in range(0, count if len(shape) > 1 else 0, len(some)):
                part = np.roll(some, int(rng.integers(len(some))))[: min(len(some), count - begin)]
                file.write((part >> 16).astype(np.uint16).tobytes())


def bytes_of_a_step() -> float:
    """Codes of 4 bits and a float32 scale for each 32: of all matrices, and of the embedding, which is the output's too."""
    weights = LAYERS * sum(a * b for a, b in MATRICES.values()) + VOCABULARY * WIDTH
    return weights * (0.5 + 4 / 32)


def decode(folder: str, threads: int, tokens: int) -> None:
    from sardonyx import SessionOptions
    from sardonyx.text import LanguageModel

    options = SessionOptions()
    options.intra_op_num_threads = threads
    model = LanguageModel(folder, sess_options=options)
    start = []

    def take(_choice: int, _token: int, _text: str) -> bool:
        if not start:
            start.extend([time.perf_counter(), time.process_time()])
        return True

    made = model.generate("a a a", max_tokens=tokens, min_tokens=tokens, greedy=True, on_token=take)
    seconds = [time.perf_counter() - start[0], time.process_time() - start[1]]
    print(json.dumps({"decode": seconds, "tokens": made.completion_tokens}))


def field(number: int, value) -> bytes:
    """Of a protocol buffer: a whole number below 128, or bytes."""
    return bytes([number << 3, value]) if isinstance(value, int) else bytes([number << 3 | 2, len(value)]) + value


def write_small_model(path: pathlib.Path) -> None:
    """A network of one Relu of 64 numbers, for `sdx bench`, which measures what memory can be read with."""
    kind = field(1, field(1, 1) + field(2, field(1, field(1, 64))))
    graph = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu")) + field(2, b"g")
    graph += field(11, field(1, b"x") + field(2, kind)) + field(12, field(1, b"y") + field(2, kind))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))


if __name__ == "__main__":
    decode(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
