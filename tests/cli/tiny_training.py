"""Small models and data to train with. Standard library only."""

import json
import struct
import zipfile


def write_training(put, folder, tiny):
    """tiny: the module tiny_models."""
    rows = [(i % 5 - 2, i % 3 - 1) for i in range(12)]
    labels = [(a > 0) + (b > 0) for a, b in rows]
    x = tiny.npy("<f4", (12, 2), tiny.floats(*[v for row in rows for v in row]))
    y = tiny.npy("<i8", (12,), struct.pack("<12q", *labels))
    with zipfile.ZipFile(folder / "points.npz", "w") as archive:
        archive.writestr("X.npy", x)
        archive.writestr("y.npy", y)
    with zipfile.ZipFile(folder / "nan.npz", "w") as archive:
        archive.writestr("X.npy", tiny.npy("<f4", (2, 2), tiny.floats(1, float("nan"), 3, 4)))
        archive.writestr("y.npy", tiny.npy("<i8", (2,), struct.pack("<2q", 0, 1)))
    put("arrays/X.npy", x)
    put("arrays/labels.npy", y)
    put("points.csv", "a,b,kind\n" + "".join(f"{a},{b},k{k}\n" for (a, b), k in zip(rows, labels)))
    put("classes.csv", "a,b,label\n1,2,0\n3,4,3\n")
    put("gaps.csv", "a,b,label\n1,2,0\n,4,1\n5,6,2\n")
    put("words.jsonl", "".join(json.dumps({"review": "ab"[: 1 + i % 2], "mood": ["bad", "good"][i % 2]}) + "\n" for i in range(6)))
    put("reader.onnx", tiny.model(
        [tiny.node("Gather", ["table", "input_ids"], ["e"]), tiny.node("ReduceMean", ["e", "axes"], ["m"], keepdims=0),
         tiny.node("Gemm", ["m", "w", "b"], ["scores"])],
        [tiny.value_info("input_ids", tiny.INT64, ["n", "length"])], [tiny.value_info("scores", tiny.FLOAT, ["n", 2])],
        [tiny.tensor("table", tiny.FLOAT, [300, 2], tiny.floats(*[0.01 * (i % 7 - 3) for i in range(600)])),
         tiny.tensor("axes", tiny.INT64, [1], struct.pack("<q", 1)), tiny.tensor("w", tiny.FLOAT, [2, 2], tiny.floats(1, 0, 0, 1)),
         tiny.tensor("b", tiny.FLOAT, [2], tiny.floats(0, 0))], opset=18))
    put("looker.onnx", tiny.model(
        [tiny.node("Flatten", ["image"], ["flat"]), tiny.node("Gemm", ["flat", "w", "b"], ["scores"], transB=1)],
        [tiny.value_info("image", tiny.FLOAT, ["n", 3, "h", "w"])], [tiny.value_info("scores", tiny.FLOAT, ["n", 2])],
        [tiny.tensor("w", tiny.FLOAT, [2, 12], tiny.floats(*[0.1 * (i % 5 - 2) for i in range(24)])),
         tiny.tensor("b", tiny.FLOAT, [2], tiny.floats(0, 0))]))
    for i in range(4):
        put(f"album/dark/{i}.png", tiny.png(2, 2, bytes([10 * i] * 12)))
        put(f"album/light/{i}.png", tiny.png(2, 2, bytes([255 - 10 * i] * 12)))
    put("broken_album/dark/0.png", tiny.png(2, 2, bytes(12)))
    put("broken_album/light/0.png", tiny.png(2, 2, bytes([255] * 12)))
    put("broken_album/light/1.png", b"no picture")
    put("looker.yml", b"name: looker\nmodel: {source: looker.onnx}\npreprocessing: {resize: [2, 2], normalize: 0-1}\n")
