"""Writes a speech model of the smallest kind for tiny_models.py: whatever it hears, it says "hello world" from 0 to 0.5 s, or translates "world".

Its attention to the sound says that a word lasts 0.2 s."""

import json

WORDS = ["[UNK]", "hello", "Ġworld", "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startofprev|>",
         "<|nospeech|>", "<|notimestamps|>"]
STEPS = 50  # of 0.02 s, in windows of 1 s
HEARD = {"<|notimestamps|>": range(10), "hello": range(10, 20), "Ġworld": range(20, STEPS)}  # where each token looks
END, FIRST = WORDS.index("<|endoftext|>"), len(WORDS)  # the time 0
FOLLOWS = {"<|startoftranscript|>": "<|en|>", "<|transcribe|>": FIRST, "<|translate|>": FIRST + 1, "<|notimestamps|>": "hello", FIRST: "hello",
           FIRST + 1: "Ġworld", "hello": "Ġworld", "Ġworld": FIRST + 25, FIRST + 25: END}


def place(word):
    return word if isinstance(word, int) else WORDS.index(word)


def write_voice(put, tiny):
    """As faster-whisper's network for voice activity: the probability is four times one sample of the chunk."""
    weights = [0.0] * 576
    weights[300] = 4.0
    states = [tiny.value_info(name, tiny.FLOAT, [1, 1, 4]) for name in ("h", "c", "hn", "cn")]
    nodes = [tiny.node("Abs", ["input"], ["loud"]), tiny.node("MatMul", ["loud", "weights"], ["speech_probs"]),
             tiny.node("Identity", ["h"], ["hn"]), tiny.node("Identity", ["c"], ["cn"])]
    put("voice.onnx", tiny.model(nodes, [tiny.value_info("input", tiny.FLOAT, ["chunks", 576]), *states[:2]],
                                 [tiny.value_info("speech_probs", tiny.FLOAT, ["chunks", 1]), *states[2:]],
                                 [tiny.tensor("weights", tiny.FLOAT, [576, 1], tiny.floats(*weights))]))


def write_speech(put, tiny):
    write_voice(put, tiny)
    size = FIRST + STEPS + 1
    rows = [[0.0] * size for _ in range(size)]
    for word, next_word in FOLLOWS.items():
        rows[place(word)][place(next_word)] = 10.0
    table = tiny.floats(*(number for row in rows for number in row))
    ids = tiny.value_info("input_ids", tiny.INT64, ["batch", "length"])
    hidden = tiny.value_info("encoder_hidden_states", tiny.FLOAT, ["batch", STEPS, 2])
    looks = [[5.0 if step in HEARD.get(word, ()) else 0.0 for step in range(STEPS)] for word in [*WORDS, *range(FIRST, size)]]
    same = [1.0 if row == column else 0.0 for row in range(STEPS) for column in range(STEPS)]
    # Attention as exports have it: products with what comes from the sound alone, which here is the same for any sound.
    nodes = [
        tiny.node("Gather", ["table", "input_ids"], ["words"]), tiny.node("Gather", ["looks", "input_ids"], ["queries"]),
        tiny.node("MatMul", ["encoder_hidden_states", "nothing"], ["zeros"]), tiny.node("Add", ["zeros", "same"], ["keys"]),
        tiny.node("MatMul", ["queries", "keys"], ["scores"]), tiny.node("Softmax", ["scores"], ["weights"]),
        tiny.node("MatMul", ["weights", "zeros"], ["mixed"]), tiny.node("MatMul", ["mixed", "no_words"], ["no_logits"]),
        tiny.node("Add", ["words", "no_logits"], ["logits"]),
    ]
    put("whisper/decoder_model.onnx", tiny.model(
        nodes, [ids, hidden], [tiny.value_info("logits", tiny.FLOAT, ["batch", "length", size])],
        [tiny.tensor("table", tiny.FLOAT, [size, size], table), tiny.tensor("same", tiny.FLOAT, [STEPS, STEPS], tiny.floats(*same)),
         tiny.tensor("looks", tiny.FLOAT, [size, STEPS], tiny.floats(*(number for row in looks for number in row))),
         tiny.tensor("nothing", tiny.FLOAT, [2, STEPS], tiny.floats(*[0.0] * 2 * STEPS)),
         tiny.tensor("no_words", tiny.FLOAT, [STEPS, size], tiny.floats(*[0.0] * STEPS * size))]))
    put("whisper/encoder_model.onnx", tiny.model(
        [tiny.node("MatMul", ["mean", "input_features"], ["means"]), tiny.node("Reshape", ["means", "shape"], ["last_hidden_state"])],
        [tiny.value_info("input_features", tiny.FLOAT, ["batch", 8, 2 * STEPS])],
        [tiny.value_info("last_hidden_state", tiny.FLOAT, ["batch", STEPS, 2])],
        [tiny.tensor("mean", tiny.FLOAT, [1, 8], tiny.floats(*[0.125] * 8)),
         tiny.tensor("shape", tiny.INT64, [3], tiny.struct.pack("<3q", -1, STEPS, 2))]))
    config = {"model_type": "whisper", "vocab_size": size, "num_mel_bins": 8, "d_model": 2, "decoder_layers": 1, "decoder_attention_heads": 1,
              "max_source_positions": STEPS, "max_target_positions": 32, "decoder_start_token_id": place("<|startoftranscript|>"),
              "eos_token_id": END, "suppress_tokens": [0], "begin_suppress_tokens": [END]}
    put("whisper/config.json", json.dumps(config))
    put("whisper/preprocessor_config.json", json.dumps({"feature_size": 8, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400, "chunk_length": 1}))
    times = [f"<|{step * 0.02:.2f}|>" for step in range(STEPS + 1)]
    put("whisper/tokenizer.json", json.dumps({
        "version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": i, "content": c, "special": True, "normalized": False} for i, c in enumerate([*WORDS, *times]) if i >= END],
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {word: i for i, word in enumerate([*WORDS, *times])}}}))
    put("speech.wav", tiny.wav(16000, [8000 * (1 if i // 20 % 2 else -1) for i in range(9600)]))
    put("long.wav", tiny.wav(16000, [8000 * (1 if i // 20 % 2 else -1) for i in range(40000)]))
    put("speech.pcm", tiny.wav(16000, [0, 1000] * 4800)[44:])
    put("recordings/a.wav", tiny.wav(16000, [0, 1000] * 4800))
    put("recordings/b.aiff", tiny.aiff(16000, [0, 1000] * 4800))
    put("recordings/notes.txt", "no sound")
    put("dubbed/a.wav", tiny.wav(16000, [0, 1000] * 4800))
    put("cut.flac", b"fLaC\0\0")
    put("other_model/config.json", json.dumps({"model_type": "bert"}))
    put("other_model/tokenizer.json", json.dumps({"version": "1.0", "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}}))
