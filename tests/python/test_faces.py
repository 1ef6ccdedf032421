"""sardonyx.faces: what goes in and out of Python."""

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper, numpy_helper

import sardonyx
from sardonyx import faces

SIDE = 64


def detector_model():
    """YuNet's outputs as constants: one face of 24x32 pixels centred at (28, 36), its points 4 pixels around the cell's corner."""
    nodes, initializers, outputs = [], [], []
    for stride in (8, 16, 32):
        cells = (SIDE // stride) ** 2
        parts = {"cls": np.zeros((1, cells, 1)), "obj": np.zeros((1, cells, 1)), "bbox": np.zeros((1, cells, 4)), "kps": np.zeros((1, cells, 10))}
        if stride == 8:
            cell = 4 * (SIDE // 8) + 3  # row 4, column 3: its corner is (24, 32)
            parts["cls"][0, cell] = 0.81
            parts["obj"][0, cell] = 1
            parts["bbox"][0, cell] = [0.5, 0.5, np.log(3), np.log(4)]
            parts["kps"][0, cell] = [-0.5, -0.5, 0.5, -0.5, 0, 0, -0.5, 0.5, 0.5, 0.5]
        for name, values in parts.items():
            full = f"{name}_{stride}"
            initializers.append(numpy_helper.from_array(values.astype(np.float32), full + "_values"))
            # Depends on the picture, so that nothing is folded away, and changes nothing.
            nodes.append(helper.make_node("Add", [full + "_values", "nothing"], [full]))
            outputs.append((full, TensorProto.FLOAT, list(values.shape)))
    initializers.append(numpy_helper.from_array(np.zeros(1, np.float32), "zero"))
    nodes = [
        helper.make_node("ReduceMax", ["input"], ["most"], keepdims=0),
        helper.make_node("Mul", ["most", "zero"], ["nothing"]),
        *nodes,
    ]
    return model(nodes, [("input", TensorProto.FLOAT, [1, 3, SIDE, SIDE])], outputs, initializers)


@pytest.fixture
def detector(tmp_path):
    path = tmp_path / "detector.onnx"
    path.write_bytes(detector_model())
    return faces.FaceDetector(path, size="native")


@pytest.fixture
def picture():
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)


def test_detection(detector, picture):
    assert detector.decoder == "yunet"
    found = detector.detect(picture)
    assert found.runtime == "native" and found.provider == "cpu" and found.turned == 0
    assert set(found.times_ms) == {"preprocess", "inference", "decode"}
    (face,) = found.faces
    assert face.box == pytest.approx((16, 20, 24, 32))
    assert face.score == pytest.approx(0.9)
    assert face.points["nose"] == pytest.approx((24, 32)) and face.points["right_eye"] == pytest.approx((20, 28))
    assert detector.detect(np.ascontiguousarray(picture)[:, ::-1]).faces[0].box == face.box  # not contiguous


def test_files(detector, picture, tmp_path):
    for ending in ("png", "bmp"):
        path = tmp_path / f"picture.{ending}"
        faces.write(path, picture)
        assert (faces.read(path) == picture).all()
        assert (faces.read(path.read_bytes()) == picture).all()
        assert len(detector.detect(path).faces) == 1
    with pytest.raises(sardonyx.NoSuchFile):
        faces.read(tmp_path / "missing.png")
    with pytest.raises(sardonyx.InvalidArgument):
        faces.read(b"no picture")


def test_faces_that_lie_have_upright_crops(detector):
    upright = np.random.default_rng(1).integers(0, 256, (60, 100, 3), np.uint8)
    wanted = faces.crop(upright, faces.Face((20, 10, 16, 24)), width=40, height=50)
    lying = np.ascontiguousarray(np.rot90(upright, -1))  # clockwise: (x, y) comes to (60 - y, x)
    face = faces.Face((60 - 10 - 24, 20, 24, 16), turned=270)
    assert (faces.crop(lying, face, width=40, height=50) == wanted).all()
    assert faces.crop_box(face, width=40, height=40, face_height=50)[2:] == pytest.approx((48, 48))
    with pytest.raises(sardonyx.InvalidArgument, match="turned"):
        faces.crop(lying, faces.Face((0, 0, 9, 9), turned=45))
    found = detector.detect(np.full((SIDE, SIDE, 3), 200, np.uint8))
    assert found.turned == found.faces[0].turned == 0 and found.smallest > 0


def test_crops(detector, picture):
    (face,) = detector.detect(picture).faces
    assert faces.crop(picture, face, preset="passport").shape == (531, 413, 3)
    assert faces.crop(picture, face, width=30, height=40, shape="ellipse").shape == (40, 30, 4)
    x, y, width, height = faces.crop_box(face, width=400, height=400, face_height=50)
    assert (x, y, width, height) == pytest.approx((28 - 32, 36 - 32, 64, 64))
    outside = faces.crop(picture, faces.Face((-500, -500, 20, 20)), width=8, height=8, colour=(1, 2, 3))
    assert (outside == [1, 2, 3]).all()
    assert {"passport", "linkedin", "avatar"} <= {p.name for p in faces.presets()}
    with pytest.raises(sardonyx.InvalidArgument, match="passport"):
        faces.crop(picture, face, preset="pasport")
    with pytest.raises(TypeError, match="wdith"):
        faces.crop(picture, face, wdith=3)
    with pytest.raises(sardonyx.InvalidArgument):
        faces.crop(picture, face, fill="stripes")


def test_alignment(detector, picture):
    (face,) = detector.detect(picture).faces
    matrix = np.array(faces.alignment(face))
    assert matrix.shape == (2, 3)
    nose = matrix @ [*face.points["nose"], 1]
    assert np.abs(nose - [56.0, 71.7]).max() < 12
    assert faces.align(picture, face, 224).shape == (224, 224, 3)
    with pytest.raises(sardonyx.InvalidArgument):
        faces.align(picture, face, 100)
    with pytest.raises(sardonyx.InvalidArgument):
        faces.align(picture, faces.Face((0, 0, 10, 10)))


def test_judging(detector, picture):
    (face,) = detector.detect(picture).faces
    quality = faces.judge(picture, face)
    assert quality.level == "high" and quality.size_px == pytest.approx(24) and 0.3 < quality.exposure < 0.7
    assert quality.roll == pytest.approx(0, abs=1e-3)
    assert faces.judge(picture, faces.Face((0, 0, 10, 10))).yaw is None
    assert faces.sharpness(np.zeros((20, 20), np.uint8)) == 0
    small = faces.Face((0, 0, 5, 5), 0.99)
    assert faces.pick(picture, [small, face], "largest") == [face]
    assert faces.pick(picture, [small, face], 1) == [small]
    assert faces.pick(picture, [small, face], 3) == []


def test_changes(detector, picture):
    (face,) = detector.detect(picture).faces
    before = picture.copy()
    hidden = faces.blur(picture, [face], "box", margin=0)
    assert (picture == before).all()
    assert (hidden[0] == picture[0]).all() and hidden[25:45, 20:35].std() < 1
    assert faces.enhance(picture, "brightness=2").mean() > picture.mean()
    with pytest.raises(sardonyx.InvalidArgument, match="brightness"):
        faces.enhance(picture, "brightnes=2")


def test_pictures_that_are_none(detector):
    for bad in (np.zeros((4, 4, 2), np.uint8), np.zeros((4, 4, 3), np.float32), np.zeros((0, 4, 3), np.uint8), np.zeros(4, np.uint8)):
        with pytest.raises(sardonyx.InvalidArgument):
            detector.detect(bad)


def test_models_that_are_no_detectors(tmp_path):
    path = tmp_path / "add.onnx"
    path.write_bytes(
        model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", TensorProto.FLOAT, [1, 3, 8, 8])], [("y", TensorProto.FLOAT, [1, 3, 8, 8])])
    )
    with pytest.raises(sardonyx.InvalidArgument, match="yunet"):
        faces.FaceDetector(path)
    with pytest.raises(sardonyx.InvalidArgument, match="runtime"):
        faces.FaceDetector(path, runtime="fast")
