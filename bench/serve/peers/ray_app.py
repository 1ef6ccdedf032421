"""ray_app.py MODEL.onnx PORT BATCH: Ray Serve with onnxruntime; requests and answers have the form of the Open Inference Protocol."""

import sys
import time

import numpy as np
import onnxruntime
import ray
from ray import serve

DTYPES = {"FP32": np.float32, "INT64": np.int64}


@serve.deployment(max_ongoing_requests=64, ray_actor_options={"num_cpus": 0})
class Alone:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)

    async def __call__(self, request):
        body = await request.json()
        outputs = self.session.run(None, feeds_of(body))
        return answer_of([one.name for one in self.session.get_outputs()], outputs)


@serve.deployment(max_ongoing_requests=64, ray_actor_options={"num_cpus": 0})
class Joined:
    def __init__(self, path, size):
        self.session = onnxruntime.InferenceSession(path)
        self.run.set_max_batch_size(size)

    @serve.batch(max_batch_size=16, batch_wait_timeout_s=0.002)
    async def run(self, requests):
        feeds = {name: np.concatenate([one[name] for one in requests]) for name in requests[0]}
        outputs = self.session.run(None, feeds)
        return [[value[i : i + 1] for value in outputs] for i in range(len(requests))]

    async def __call__(self, request):
        outputs = await self.run(feeds_of(await request.json()))
        return answer_of([one.name for one in self.session.get_outputs()], outputs)


def feeds_of(body):
    return {one["name"]: np.array(one["data"], DTYPES[one["datatype"]]).reshape(one["shape"]) for one in body["inputs"]}


def answer_of(names, values):
    return {"outputs": [{"name": n, "datatype": "FP32", "shape": list(v.shape), "data": v.ravel().tolist()} for n, v in zip(names, values)]}


if __name__ == "__main__":
    path, port, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ray.init(include_dashboard=False, log_to_driver=False, num_cpus=2)
    serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config={"enable_access_log": False})
    serve.run(Joined.bind(path, batch) if batch > 1 else Alone.bind(path), route_prefix="/")
    while True:
        time.sleep(60)
