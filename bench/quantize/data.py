"""The models that are quantised, and what they are calibrated and measured with."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "suite"))

SHAPED = ("resnet50", "mobilenet_v2", "bert_base_128")
# Real models where SDX_TEST_MODELS has them: case files with recorded inputs.
REAL = {
    "mnist": "cls_mnist_cntk/mnist",
    "cct": "cct_fp32/CCT_2_32_32_128_Opset20/network",
    "yunet": "face_yunet/face_detection_yunet_2023mar",
    "yolox_nano": "det_yolox_nano/yolox_nano",
    "ppocr_det": "ocr_ppocrv4/ch_PP-OCRv4_det_infer",
    "ppocr_rec": "ocr_ppocrv4/ch_PP-OCRv4_rec_infer",
    "ppocr_cls": "ocr_ppocrv4/ch_ppocr_mobile_v2.0_cls_infer",
    "espcn": "superres_espcn/nn_resize_float_model",
    "magika": "text_magika/model",
    "silero_vad": "vad_silero/silero_vad_op18_ifless",
}


def _changed(x, random):
    """Another input like a recorded one: shifted and dimmed, pictures also mirrored; ids are taken elsewhere in the sequence."""
    if x.ndim == 0 or x.size < 32:
        return x
    if x.ndim == 4:
        x = np.roll(x, random.integers(-24, 25, 2), (2, 3))
        x = x[..., ::-1] if random.random() < 0.5 else x
    else:
        x = np.roll(x, random.integers(0, x.shape[-1]), -1)
    if not np.issubdtype(x.dtype, np.floating):
        return np.ascontiguousarray(x)
    return np.ascontiguousarray(x * random.uniform(0.6, 1.05)).astype(x.dtype)


def _recorded(case):
    folder = os.path.dirname(case)
    sets = json.load(open(case))["sets"]
    sets = sets.values() if isinstance(sets, dict) else sets
    return [{name: np.load(os.path.join(folder, file)) for name, file in s["inputs"].items()} for s in sets]


def real(name, models, count):
    """(file, batches): None where the model is not there."""
    base = os.path.join(models, REAL[name])
    if not models or not os.path.exists(base + ".case.json"):
        return None
    random = np.random.default_rng(5)
    recorded = _recorded(base + ".case.json")
    batches = [{k: _changed(v, random) for k, v in recorded[i % len(recorded)].items()} for i in range(count)]
    return base + ".onnx", batches


def shaped(name, folder, count):
    """Random weights with the statistics of trained ones (bench/suite), random inputs."""
    import models

    random = np.random.default_rng(5)
    file = models.make(folder, name)
    if name.startswith("bert"):
        def batch():
            mask = np.ones((1, 128), np.int64)
            mask[:, int(random.integers(32, 128)) :] = 0
            return {"input_ids": random.integers(0, 30522, (1, 128)), "attention_mask": mask}
    else:
        import onnx

        info = onnx.load(file, load_external_data=False).graph.input[0]
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]

        def batch():
            # Pictures: neighbours are alike.
            small = random.standard_normal((*shape[:2], shape[2] // 8, shape[3] // 8), np.float32)
            return {info.name: (small.repeat(8, 2).repeat(8, 3) + 0.5 * random.standard_normal(shape, np.float32))}

    return file, [batch() for _ in range(count)]
