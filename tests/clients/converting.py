"""Models that frameworks' own tools export, run with Sardonyx and compared with the framework's own predictions (docs/converting.md).

converting.py [NAME...]: all cases whose packages this interpreter has, or those of the frameworks that are named (torch, torch_dynamo,
keras, sklearn, xgboost, lightgbm). The package is found by PYTHONPATH. Exit code 77 where there is no case to run."""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(SKIPPED)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
warnings.filterwarnings("ignore")
CASES = []


def case(framework, *packages):
    """A function that gives (model's path, feed, expected outputs, tolerance), or yields several."""

    def add(function):
        CASES.append((framework, packages, function))
        return function

    return add


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# --- PyTorch ----------------------------------------------------------------------------------------------------------------------


def torch_models():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 32)
            self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
            self.head = nn.Linear(32, 5)

        def forward(self, ids):
            return self.head(self.layer(self.embed(ids)).mean(1))

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = nn.GRU(32, 6, batch_first=True)

        def forward(self, x):
            return self.gru(self.lstm(x)[0])[0]

    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(),
        nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 4), nn.Softmax(-1))
    ids = torch.arange(24).reshape(2, 12) % 50
    yield "perceptron", nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3)), torch.from_numpy(random(4, 10))
    yield "convolutions", convolutions, torch.from_numpy(random(2, 3, 32, 32))
    yield "attention", Attention(), ids
    yield "recurrent", Recurrent(), torch.from_numpy(random(2, 7, 8))


def torch_case(folder, dynamo):
    import torch

    for name, model, x in torch_models():
        model.eval()
        path = folder / f"{name}.onnx"
        modern = {"dynamo": dynamo} if int(torch.__version__.split(".")[0]) >= 2 else {}
        if dynamo:
            shapes = ({0: torch.export.Dim("batch")},)
            torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], dynamic_shapes=shapes, verbose=False, **modern)
        else:
            torch.onnx.export(model, (x,), str(path), input_names=["x"], output_names=["y"], opset_version=15,
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, **modern)
        with torch.no_grad():
            for rows in (x, torch.cat([x, x, x])):  # also another batch than the one exported with
                yield name, path, {"x": rows.numpy()}, [model(rows).numpy()], 1e-5


@case("torch", "torch")
def torch_script(folder):
    yield from torch_case(folder, False)


@case("torch_dynamo", "torch", "onnxscript")
def torch_dynamo(folder):
    yield from torch_case(folder, True)


# --- Keras ------------------------------------------------------------------------------------------------------------------------


@case("keras", "keras")
def keras_export(folder):
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    picture = keras.Sequential([
        layers.Input((32, 32, 3)), layers.Conv2D(8, 3, strides=2, padding="same"), layers.BatchNormalization(), layers.ReLU(),
        layers.DepthwiseConv2D(3, padding="same"), layers.MaxPooling2D(), layers.GlobalAveragePooling2D(), layers.Dropout(0.5),
        layers.Dense(4, activation="softmax")])
    numbers = keras.Sequential([layers.Input((10,)), layers.Dense(32),
                                layers.Activation(lambda x: keras.activations.gelu(x, approximate=True)), layers.LayerNormalization(), layers.Dense(3)])
    series = keras.Sequential([layers.Input((7, 8)), layers.LSTM(16, return_sequences=True), layers.GRU(6), layers.Dense(2)])
    words = keras.Input((12,), dtype="int32")
    seen = layers.Embedding(50, 32)(words)
    texts = keras.Model(words, layers.Dense(5)(layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(4, 8)(seen, seen))))
    for name, model, x in (("perceptron", numbers, random(4, 10)), ("convolutions", picture, random(2, 32, 32, 3)),
                           ("recurrent", series, random(2, 7, 8)), ("attention", texts, np.arange(24, dtype=np.int32).reshape(2, 12))):
        path = folder / f"{name}.onnx"
        model(x)  # export() refuses a model that was never called
        model.export(str(path), format="onnx", verbose=False)
        yield name, path, [x], [model.predict(x, verbose=0)], 1e-5


# --- trees and classical models ---------------------------------------------------------------------------------------------------


def table():
    x = random(200, 6)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 1), x[:, 0] * 2 + np.abs(x[:, 1])


@case("sklearn", "sklearn", "skl2onnx")
def sklearn_export(folder):
    from skl2onnx import to_onnx
    from sklearn import cluster, decomposition, ensemble, linear_model, neighbors, neural_network, pipeline, preprocessing, svm

    x, labels, values = table()
    classifiers = {
        "LogisticRegression": linear_model.LogisticRegression(), "RandomForestClassifier": ensemble.RandomForestClassifier(20, random_state=0),
        "GradientBoostingClassifier": ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0),
        "KNeighborsClassifier": neighbors.KNeighborsClassifier(), "MLPClassifier": neural_network.MLPClassifier((16,), random_state=0),
        "scaled SVC": pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC(probability=True, random_state=0))}
    for name, model in classifiers.items():
        model.fit(x, labels)
        path = folder / "model.onnx"
        path.write_bytes(to_onnx(model, x[:1], options={"zipmap": False}).SerializeToString())
        yield name, path, {"X": x}, [model.predict(x), model.predict_proba(x)], 2e-5
    others = {"LinearRegression": linear_model.LinearRegression(), "SVR": svm.SVR(),
              "RandomForestRegressor": ensemble.RandomForestRegressor(20, random_state=0)}
    for name, model in others.items():
        model.fit(x, values)
        path.write_bytes(to_onnx(model, x[:1]).SerializeToString())
        yield name, path, {"X": x}, [model.predict(x).reshape(-1, 1)], 2e-5
    for name, model in {"PCA": decomposition.PCA(3), "polynomial": preprocessing.PolynomialFeatures(2)}.items():
        model.fit(x)
        path.write_bytes(to_onnx(model, x[:1]).SerializeToString())
        yield name, path, {"X": x}, [model.transform(x)], 2e-5
    means = cluster.KMeans(3, n_init=1, random_state=0).fit(x)
    path.write_bytes(to_onnx(means, x[:1]).SerializeToString())
    yield "KMeans", path, {"X": x}, [means.predict(x), means.transform(x)], 1e-4


@case("sklearn", "sklearn", "skl2onnx")
def sklearn_texts(folder):
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType
    from sklearn import feature_extraction, linear_model, pipeline

    words = ["good film", "a bad film", "very good", "bad, very bad", "good good acting", "bad acting"]
    model = pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()).fit(words, [1, 0, 1, 0, 1, 0])
    path = folder / "texts.onnx"
    path.write_bytes(convert_sklearn(model, initial_types=[("texts", StringTensorType([None]))],
                                     options={"zipmap": False}).SerializeToString())
    yield "TfidfVectorizer", path, {"texts": np.array(words)}, [model.predict(words), model.predict_proba(words)], 2e-5


def trees(folder, classifier, regressor, convert):
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, labels, values = table()
    types = [("X", FloatTensorType([None, x.shape[1]]))]
    path = folder / "trees.onnx"
    classifier.fit(x, labels)
    path.write_bytes(convert(classifier, types, zipmap=False).SerializeToString())
    yield "classifier", path, {"X": x}, [classifier.predict(x), classifier.predict_proba(x)], 2e-5
    regressor.fit(x, values)
    path.write_bytes(convert(regressor, types).SerializeToString())
    yield "regressor", path, {"X": x}, [regressor.predict(x).reshape(-1, 1)], 2e-5


@case("xgboost", "xgboost", "onnxmltools", "sklearn")
def xgboost_export(folder):
    import onnxmltools
    import xgboost

    yield from trees(folder, xgboost.XGBClassifier(n_estimators=20), xgboost.XGBRegressor(n_estimators=20),
                     lambda model, types, **_: onnxmltools.convert_xgboost(model, initial_types=types))


@case("lightgbm", "lightgbm", "onnxmltools", "sklearn")
def lightgbm_export(folder):
    import lightgbm
    import onnxmltools

    yield from trees(folder, lightgbm.LGBMClassifier(n_estimators=20, verbose=-1), lightgbm.LGBMRegressor(n_estimators=20, verbose=-1),
                     lambda model, types, **options: onnxmltools.convert_lightgbm(model, initial_types=types, **options))


# ----------------------------------------------------------------------------------------------------------------------------------


def difference(found, expected):
    """The largest difference, relative to the largest expected element; a text for another shape."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind not in "fiub":
        return 0.0 if (found == expected).all() else "other texts"
    return float(np.abs(found.astype(np.float64) - expected).max() / max(1.0, np.abs(expected).max()))


def main():
    import sardonyx

    ran = failures = 0
    for framework, packages, function in CASES:
        if (len(sys.argv) > 1 and framework not in sys.argv[1:]) or not all(map(importlib.util.find_spec, packages)):
            continue
        with scratch() as folder:
            for name, path, feed, expected, tolerance in function(folder):
                session = sardonyx.InferenceSession(str(path), providers=["cpu"])
                if isinstance(feed, list):  # the exporter chose the names
                    feed = {i.name: v for i, v in zip(session.get_inputs(), feed)}
                found = session.run(None, feed)
                differences = [difference(f, e) for f, e in zip(found, expected)]
                right = len(found) == len(expected) and all(isinstance(d, float) and d <= tolerance for d in differences)
                print(f"{'ok' if right else 'FAIL'} {framework} {name}: {differences}")
                ran, failures = ran + 1, failures + (not right)
    if ran == 0:
        print("skipped: none of the frameworks is installed")
        return SKIPPED
    print(f"{ran} models, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
