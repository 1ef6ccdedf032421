"""The suite: name -> how to make the model. `python models.py FOLDER [NAME...]` writes what is missing there."""

import os
import sys

import onnx

import cnn
import language
import light
import others
import sequence
import speech
import vision

# Larger figures make all files anew.
VERSION = 2


def _quantized(make):
    from quantized import quantized

    return quantized(make())


def _dynamic(make):
    from quantized import dynamic

    return dynamic(make())


SUITE = {
    **{name: (lambda name=name: light.light(name)) for name in light.FILES},
    "mobilenet_v2": cnn.mobilenet_v2,
    "mobilenet_v3_large": cnn.mobilenet_v3_large,
    "efficientnet_b0": cnn.efficientnet_b0,
    "yolov8n": cnn.yolov8n,
    "bert_base_128": lambda: sequence.bert(128),
    "bert_base_384": lambda: sequence.bert(384),
    "minilm_l6_128": lambda: sequence.bert(128, layers=6, features=384, heads=12, seed=21),
    "vit_b16": sequence.vit_b16,
    "whisper_tiny_encoder": sequence.whisper_tiny_encoder,
    "gpt2_prefill_128": lambda: sequence.gpt2(128, 0),
    "gpt2_decode_past_256": lambda: sequence.gpt2(1, 256),
    "lstm_2x512": sequence.lstm,
    "resnet50_int8": lambda: _quantized(lambda: light.light("resnet50")),
    "mobilenet_v2_int8": lambda: _quantized(cnn.mobilenet_v2),
    "yolov8n_int8": lambda: _quantized(cnn.yolov8n),
    "bert_base_128_int8": lambda: _dynamic(lambda: sequence.bert(128)),
    "distilbert_128": language.distilbert,
    "convnext_t": vision.convnext_t,
    "swin_t": vision.swin_t,
    "detr": vision.detr,
    "sam_encoder": vision.sam_encoder,
    "conformer": speech.conformer,
    "wav2vec2": speech.wav2vec2,
    "gat": others.gat,
    "forest": others.forest,
    "llm_int4_prefill_128": lambda: language.llm_int4(128, 0),
    "llm_int4_decode_past_256": lambda: language.llm_int4(1, 256),
}
INTEGER = {"resnet50_int8", "mobilenet_v2_int8", "yolov8n_int8", "bert_base_128_int8", "llm_int4_prefill_128", "llm_int4_decode_past_256"}


def path_of(folder, name):
    return os.path.join(folder, f"{name}.v{VERSION}.onnx")


def make(folder, name):
    """The file; made under another name first, so that a file that is there is whole."""
    path = path_of(folder, name)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        model = SUITE[name]()
        # onnxruntime-genai puts SimplifiedLayerNormalization into ai.onnx, where ONNX does not know it.
        if not any(node.op_type == "SimplifiedLayerNormalization" for node in model.graph.node):
            onnx.checker.check_model(model)
        onnx.save(model, path + ".new")
        os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    for wanted in sys.argv[2:] or SUITE:
        file = make(sys.argv[1], wanted)
        print(f"{wanted}: {os.path.getsize(file) / 1e6:.1f} MB", flush=True)
