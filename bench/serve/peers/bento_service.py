"""BentoML with onnxruntime. BENCH_MODEL names the file, BENCH_BATCH how many samples come together (1: none)."""

import os

import bentoml
import numpy as np
import onnxruntime

PATH, BATCH = os.environ["BENCH_MODEL"], int(os.environ["BENCH_BATCH"])


@bentoml.service(workers=1, traffic={"timeout": 60, "concurrency": 64}, metrics={"enabled": False}, logging={"access": {"enabled": False}})
class Model:
    def __init__(self):
        self.session = onnxruntime.InferenceSession(PATH)
        self.inputs = self.session.get_inputs()

    def run(self, x: np.ndarray) -> np.ndarray:
        if self.inputs[0].type == "tensor(int64)":
            ids = x.astype(np.int64)
            return self.session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
        return self.session.run(None, {self.inputs[0].name: x.astype(np.float32)})[0]

    if BATCH > 1:

        @bentoml.api(batchable=True, max_batch_size=BATCH, max_latency_ms=10_000)
        def infer(self, x: np.ndarray) -> np.ndarray:
            return self.run(x)

    else:

        @bentoml.api
        def infer(self, x: np.ndarray) -> np.ndarray:
            return self.run(x)
