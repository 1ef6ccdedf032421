"""Exports networks with random weights from timm, torchvision, transformers and networks.py: `export.py FOLDER [--only A,B]`.

None of them was looked at when the suite's models were chosen. An existing file is kept. With --int8, also quantises the networks of
INT8 statically (QDQ, by channel), as onnxruntime.quantization does.
"""

import argparse
import contextlib
import logging
import os
import sys
import warnings

import networks
import torch

TIMM = """resnext50_32x4d regnety_008 mobilevit_s efficientnetv2_rw_t hrnet_w18_small repvgg_a2 ghostnet_100 mixer_s32_224
deit_tiny_patch16_224 edgenext_small coat_lite_mini levit_128 poolformer_s12 inception_v3 xception41 res2net50_14w_8s dpn68 darknet53
cspresnet50 maxvit_rmlp_pico_rw_256 nfnet_l0 mnasnet_100 tf_efficientnet_lite0 mobileone_s1 fastvit_t8 convmixer_768_32 botnet26t_256
halonet26t volo_d1_224 pvt_v2_b0 twins_svt_small crossvit_tiny_240 tiny_vit_5m_224 repvit_m1 efficientformer_l1 swinv2_cr_tiny_224
hiera_tiny_224 mambaout_tiny davit_tiny focalnet_tiny_srf starnet_s1 mobilenetv4_conv_small hgnet_small selecsls42b visformer_tiny
cait_xxs24_224 xcit_tiny_12_p16_224 resmlp_12_224 gmlp_s16_224 vovnet39a mobilevitv2_100 convnextv2_atto nextvit_small nest_tiny
gcresnet33ts tresnet_m dla34 skresnet34 rexnet_100 lcnet_100 eva02_tiny_patch14_224 tinynet_a""".split()

INT8 = """timm_regnety_008 timm_mobilevit_s timm_resnext50_32x4d timm_ghostnet_100 timm_hrnet_w18_small timm_mobilenetv4_conv_small
timm_repvgg_a2 timm_convnextv2_atto timm_inception_v3 timm_lcnet_100 tv_shufflenet_v2 unet crnn""".split()


class Call(torch.nn.Module):
    """Calls a network with named inputs and gives one of its results."""

    def __init__(self, network, names=None, pick=lambda result: result):
        super().__init__()
        self.network, self.names, self.pick = network, names, pick

    def forward(self, *inputs):
        named = self.names is not None
        return self.pick(self.network(**dict(zip(self.names, inputs))) if named else self.network(*inputs))


def from_timm(name):
    import timm

    try:
        network = timm.create_model(name, exportable=True)
    except TypeError:  # it has no such form
        network = timm.create_model(name)
    return network, (torch.randn(1, *network.default_cfg["input_size"]),)


def from_torchvision():
    from torchvision import models as m

    picture, video = torch.randn(1, 3, 224, 224), torch.randn(1, 3, 8, 112, 112)
    wide, rgb = torch.randn(1, 3, 320, 320), [torch.rand(3, 320, 320)]
    none = {"weights": None, "weights_backbone": None}

    def segments(network):
        return Call(network, pick=lambda result: result["out"])

    return {
        "deeplab_mnv3": (lambda: segments(m.segmentation.deeplabv3_mobilenet_v3_large(**none)), (wide,)),
        "lraspp": (lambda: segments(m.segmentation.lraspp_mobilenet_v3_large(**none)), (wide,)),
        "fcn_r50": (lambda: segments(m.segmentation.fcn_resnet50(**none)), (picture,)),
        "ssdlite": (lambda: m.detection.ssdlite320_mobilenet_v3_large(**none), (rgb,)),
        "fasterrcnn_mnv3": (lambda: m.detection.fasterrcnn_mobilenet_v3_large_320_fpn(**none), (rgb,)),
        "r3d18": (lambda: m.video.r3d_18(), (video,)),
        "r2plus1d": (lambda: m.video.r2plus1d_18(), (video,)),
        "shufflenet_v2": (lambda: m.shufflenet_v2_x1_0(), (picture,)),
        "wide50": (lambda: m.wide_resnet50_2(), (picture,)),
        "resnet18_batch_8": (lambda: m.resnet18(), (torch.randn(8, 3, 224, 224),)),
        "mobilenet_v2_batch_8": (lambda: m.mobilenet_v2(), (torch.randn(8, 3, 224, 224),)),
    }


def from_transformers():
    import transformers as t

    def config(kind, **settings):
        made = kind(**settings)
        made._attn_implementation = "eager"
        made.use_cache = False
        return made

    first = lambda result: result[0]  # noqa: E731
    text, ids, pixels = {"vocab_size": 1000}, ["input_ids"], ["pixel_values"]
    words = lambda length, batch=1: (torch.randint(0, 999, (batch, length)),)  # noqa: E731
    picture = lambda side: (torch.randn(1, 3, side, side),)  # noqa: E731
    small = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
    llama = {"vocab_size": 4000, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 9,
             "num_key_value_heads": 3}
    bart = {f"{side}_{key}": value for side in ("encoder", "decoder")
            for key, value in (("layers", 4), ("attention_heads", 8), ("ffn_dim", 2048))}
    deberta = {"num_hidden_layers": 6, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256}
    masked = (*words(128), torch.ones(1, 128, dtype=torch.int64))
    # name: network, its configuration, inputs, results
    rows = {
        "t5_encoder": (t.T5EncoderModel, config(t.T5Config, **text, d_model=512, num_layers=6, d_ff=2048), ids, words(128), first),
        "albert": (t.AlbertModel, config(t.AlbertConfig, **text, hidden_size=768, num_attention_heads=12, intermediate_size=3072,
                                         num_hidden_layers=6), ids, words(128), first),
        "mobilebert": (t.MobileBertModel, config(t.MobileBertConfig, num_hidden_layers=12), ids, words(128), first),
        "squeezebert": (t.SqueezeBertModel, config(t.SqueezeBertConfig, num_hidden_layers=6), ids, words(128), first),
        "deberta": (t.DebertaV2Model, config(t.DebertaV2Config, **text, **small, **deberta), ["input_ids", "attention_mask"], masked, first),
        "distilbert_batch_8": (t.DistilBertModel, config(t.DistilBertConfig, **text), ids, words(32, 8), first),
        "bert_16": (t.BertModel, config(t.BertConfig, **text), ids, words(16), first),
        "bart": (t.BartModel, config(t.BartConfig, **text, **bart, d_model=512), ids, words(64), first),
        "gpt_neox": (t.GPTNeoXModel, config(t.GPTNeoXConfig, **text, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                                            intermediate_size=2048), ids, words(64), first),
        "llama": (t.LlamaForCausalLM, config(t.LlamaConfig, **llama), ids, words(128), first),
        "llama_1_token": (t.LlamaForCausalLM, config(t.LlamaConfig, **llama), ids, words(1), first),
        "mamba": (t.MambaModel, config(t.MambaConfig, **text, hidden_size=256, num_hidden_layers=2), ids, words(24), first),
        "clip_text": (t.CLIPTextModel, config(t.CLIPTextConfig, **text, num_hidden_layers=6, eos_token_id=999), ids, words(77), first),
        "clip_vision": (t.CLIPVisionModel, config(t.CLIPVisionConfig, num_hidden_layers=6), pixels, picture(224), first),
        "yolos": (t.YolosModel, config(t.YolosConfig, **small, num_hidden_layers=4, image_size=[256, 256]), pixels, picture(256), first),
        "dpt": (t.DPTForDepthEstimation, config(t.DPTConfig, **small, image_size=224), pixels, picture(224), first),
        "segformer": (t.SegformerForSemanticSegmentation, config(t.SegformerConfig), pixels, picture(256), first),
        "swin2sr": (t.Swin2SRModel, config(t.Swin2SRConfig, image_size=64, embed_dim=96, depths=[2, 2], num_heads=[6, 6]), pixels, picture(64), first),
        "regnet": (t.RegNetModel, config(t.RegNetConfig), pixels, picture(224), first),
        "hubert": (t.HubertModel, config(t.HubertConfig, num_hidden_layers=4), ["input_values"], (torch.randn(1, 32000),), first),
        "ast": (t.ASTModel, config(t.ASTConfig, **small, num_hidden_layers=4, max_length=512), ["input_values"], (torch.randn(1, 512, 128),), first),
        "hifigan": (t.SpeechT5HifiGan, t.SpeechT5HifiGanConfig(), ["spectrogram"], (torch.randn(1, 64, 80),), lambda result: result),
    }
    return {name: (lambda row=row: Call(row[0](row[1]), row[2], row[4]), row[3]) for name, row in rows.items()}


@contextlib.contextmanager
def silent():
    """The exporter prints whole graphs from C++."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def export(network, inputs, path):
    """By way of TorchScript, or where that fails by torch.export."""
    network.eval()
    with torch.no_grad(), silent():
        try:
            torch.onnx.export(network, inputs, path, dynamo=False, opset_version=17)
        except Exception:
            torch.onnx.export(network, inputs, path, dynamo=True, opset_version=18, external_data=False)


def quantise(path, to):
    import numpy as np
    import onnxruntime
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(q.CalibrationDataReader):
        def __init__(self, model):
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            random = np.random.default_rng(0)
            self.left = [{i.name: random.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()} for _ in range(2)]

        def get_next(self):
            return self.left.pop() if self.left else None

    prepared = to + ".prepared"
    quant_pre_process(path, prepared, skip_symbolic_shape=True)
    q.quantize_static(prepared, to, Samples(prepared), quant_format=q.QuantFormat.QDQ, per_channel=True,
                      activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)
    os.remove(prepared)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", help="parts of names, separated by commas")
    parser.add_argument("--int8", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    os.makedirs(args.folder, exist_ok=True)
    wanted = args.only.split(",") if args.only else [""]
    makers = {f"timm_{name}": lambda name=name: from_timm(name) for name in TIMM}
    makers |= {f"tv_{name}": lambda row=row: (row[0](), row[1]) for name, row in from_torchvision().items()}
    makers |= {f"hf_{name}": lambda row=row: (row[0](), row[1]) for name, row in from_transformers().items()}
    makers |= {name: lambda row=row: (row[0](), row[1]()) for name, row in networks.NETWORKS.items()}
    failed = 0
    for name, make in makers.items():
        path = os.path.join(args.folder, name + ".onnx")
        if os.path.exists(path) or not any(part in name for part in wanted):
            continue
        torch.manual_seed(0)
        try:
            export(*make(), path)
            print(name, flush=True)
        except Exception as error:
            failed += 1
            print(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}", file=sys.stderr, flush=True)
    for name in INT8 if args.int8 else []:
        path, to = (os.path.join(args.folder, n + ".onnx") for n in (name, name + "_int8"))
        if os.path.exists(path) and not os.path.exists(to):
            quantise(path, to)
            print(name + "_int8", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
