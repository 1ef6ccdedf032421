"""Sentence vectors by one engine, in a process of its own: embed_worker.py ENGINE FOLDER THREADS WORDS OUT.npy. Prints JSON.

WORDS: of each sentence, or `mixed` (2 to 120). The peer does what sentence-transformers does: sentences sorted by length, batches of 32, tokens by
the package tokenizers (in parallel where there are threads), mean of the last layer, length 1.
"""

import json
import os
import random
import sys
import time

engine, folder, threads, words, out = sys.argv[1:]
os.environ["TOKENIZERS_PARALLELISM"] = "true" if int(threads) > 1 else "false"
os.environ["RAYON_NUM_THREADS"] = threads

import numpy as np  # noqa: E402

WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part place case week "
         "company system program question work government number night point home water room mother area money story fact month lot right study "
         "book eye job word business issue side kind head house service friend father power hour game line end member law car city community name "
         "president team minute idea body information back parent face others level office door health person art war history party result change "
         "morning reason research girl guy moment air teacher force education").split()  # fmt: skip


def sentences() -> list:
    rng = random.Random(7)
    count = {"5": 512, "20": 256, "100": 64, "mixed": 128}[words]
    length = lambda: rng.randint(2, 120) if words == "mixed" else int(words)
    return [" ".join(rng.choice(WORDS) for _ in range(length())) + "." for _ in range(count)]


def onnxruntime_vectors():
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def embed(texts: list) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for at in range(0, len(order), 32):
            chosen = order[at : at + 32]
            encodings = tokenizer.encode_batch([texts[i] for i in chosen])
            mask = np.array([e.attention_mask for e in encodings], np.int64)
            inputs = {"input_ids": np.array([e.ids for e in encodings], np.int64), "attention_mask": mask,
                      "token_type_ids": np.array([e.type_ids for e in encodings], np.int64)}  # fmt: skip
            hidden = session.run(None, inputs)[0]
            weights = mask[..., None].astype(np.float32)
            mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
            vectors[chosen] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    return embed


def sardonyx_vectors():
    from sardonyx import SessionOptions
    from sardonyx.text import TextEmbedder

    options = SessionOptions()
    options.intra_op_num_threads = int(threads)
    return TextEmbedder(folder, sess_options=options).embed


def main():
    embed = {"onnxruntime": onnxruntime_vectors, "sardonyx": sardonyx_vectors}[engine]()
    texts = sentences()
    embed(texts)  # plans, caches
    best = [float("inf"), float("inf")]
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        vectors = embed(texts)
        best = [min(best[0], time.perf_counter() - wall), min(best[1], time.process_time() - cpu)]
    np.save(out, vectors)
    print(json.dumps({"sentences": len(texts), "embed": best}))


main()
