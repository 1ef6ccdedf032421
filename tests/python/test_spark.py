import sys

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper


def test_a_column_by_predict_batch_udf(tmp_path, monkeypatch):
    """The way of docs/serve/scale.md."""
    pytest.importorskip("pyspark")
    pytest.importorskip("pandas")
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql import SparkSession
    from pyspark.sql.types import ArrayType, FloatType

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    path = str(tmp_path / "double.onnx")
    (tmp_path / "double.onnx").write_bytes(model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", TensorProto.FLOAT, ["n", 2])],
                                                 [("y", TensorProto.FLOAT, ["n", 2])]))

    def make_predict_fn():
        import sardonyx

        options = sardonyx.SessionOptions()
        options.intra_op_num_threads = 1
        session = sardonyx.InferenceSession(path, options)

        def predict(x: np.ndarray) -> np.ndarray:
            return session.run(None, {"x": x.astype(np.float32)})[0]

        return predict

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        double = predict_batch_udf(make_predict_fn, return_type=ArrayType(FloatType()), batch_size=64, input_tensor_shapes=[[2]])
        rows = spark.createDataFrame([(i, [float(i), 0.5]) for i in range(300)], ["id", "x"]).repartition(4)
        found = {row["id"]: list(row["y"]) for row in rows.withColumn("y", double("x")).collect()}
    finally:
        spark.stop()
    assert found == {i: [2.0 * i, 1.0] for i in range(300)}
