import json
import time
import urllib.request

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper

import sardonyx
from sardonyx.ray import Predictor, deployment


def write(path, extent="n"):
    """total = the sum of x + k, of which there are 3 and 1 in a row; double = 2 k."""
    nodes = [helper.make_node("Add", ["x", "k"], ["sum"]), helper.make_node("ReduceSum", ["sum", "axes"], ["total"], keepdims=0),
             helper.make_node("Add", ["k", "k"], ["double"])]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    path.write_bytes(model(nodes, [("x", TensorProto.FLOAT, [extent, 3]), ("k", TensorProto.FLOAT, [extent, 1])],
                           [("total", TensorProto.FLOAT, [extent]), ("double", TensorProto.FLOAT, [extent, 1])], [axes]))
    return str(path)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "sum.onnx")


def rows(count):
    return {"id": np.arange(count), "x": np.arange(3 * count, dtype=np.float64).reshape(count, 3), "k": np.full(count, 10)}


def expected(batch):
    return (np.stack(list(batch["x"])).astype(np.float32) + np.asarray(batch["k"], np.float32)[:, None]).sum(axis=1)


def test_columns_go_in_and_come_out(file):
    batch = rows(5)
    out = Predictor(file)(batch)
    assert list(out) == ["id", "x", "k", "total", "double"]
    assert out["total"].dtype == np.float32 and out["total"].tolist() == expected(batch).tolist()
    lists = np.empty(5, dtype=object)
    lists[:] = [row.tolist() for row in batch["x"]]
    assert Predictor(file, outputs=["total"], keep=["id"])({**batch, "x": lists})["total"].tolist() == expected(batch).tolist()
    named = Predictor(file, inputs={"x": "features", "k": "shift"}, outputs={"total": "score"}, keep=False)
    assert list(named({"features": batch["x"], "shift": batch["k"]})) == ["score"]
    assert named({"features": batch["x"][:0], "shift": batch["k"][:0]})["score"].shape == (0,)


@pytest.mark.parametrize("count", [1, 4, 9])
def test_models_of_fixed_batches_take_any_number_of_rows(tmp_path, count):
    batch = rows(count)
    out = Predictor(write(tmp_path / "fixed.onnx", extent=4), outputs=["total"])(batch)
    assert out["total"].tolist() == expected(batch).tolist()


def test_what_is_wrong_is_said(file):
    with pytest.raises(sardonyx.InvalidArgument, match="inputs must say where all of the model's inputs come from: x, k"):
        Predictor(file, inputs={"x": "a"})
    with pytest.raises(sardonyx.InvalidArgument, match="no output 'z'; it has total, double"):
        Predictor(file, outputs=["z"])
    with pytest.raises(sardonyx.InvalidArgument, match="there is no column 'x'; columns: a, b"):
        Predictor(file)({"a": [1], "b": [2]})
    with pytest.raises(AttributeError, match="did you mean 'strict'"):
        Predictor(file, session_options={"strickt": True})


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_several_workers_share_a_data_set(cluster, file):
    class WithProcess(Predictor):
        def __call__(self, batch):
            import os

            time.sleep(0.05)
            count = len(batch["id"])
            return {**super().__call__(batch), "process": np.full(count, os.getpid()),
                    "threads": np.full(count, self.session.get_session_options().intra_op_num_threads)}

    batch = rows(600)
    data = cluster.data.from_items([{"id": int(i), "x": x.tolist(), "k": 10.0} for i, x in zip(batch["id"], batch["x"])], override_num_blocks=12)
    done = data.map_batches(WithProcess, fn_constructor_kwargs={"model": file, "outputs": ["total"]}, batch_size=50, num_cpus=1, concurrency=2)
    table = sorted(done.take_all(), key=lambda row: row["id"])
    assert [row["total"] for row in table] == expected(batch).tolist()
    assert len({row["process"] for row in table}) == 2 and {row["threads"] for row in table} == {1}


def test_a_model_is_served(cluster, file):
    from ray import serve

    handle = serve.run(deployment(file, num_replicas=2, ray_actor_options={"num_cpus": 1}, batch_wait_timeout_s=0.05), name="sum", route_prefix="/sum")
    try:
        answers = [handle.predict.remote({"x": np.full(3, i, np.float32), "k": np.float32([1])}) for i in range(20)]
        assert [float(a.result()["total"]) for a in answers] == [3.0 * i + 3 for i in range(20)]
        request = urllib.request.Request("http://127.0.0.1:8000/sum", json.dumps({"inputs": {"x": [[1, 2, 3], [4, 5, 6]], "k": [[0], [1]]}}).encode())
        assert json.load(urllib.request.urlopen(request))["outputs"] == {"total": [6.0, 18.0], "double": [[0.0], [2.0]]}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8000/sum", b"{}"))
        assert refused.value.code == 400
    finally:
        serve.shutdown()
