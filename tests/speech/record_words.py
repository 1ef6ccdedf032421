"""Writes word_answers.json: what openai-whisper makes of the models of whisper_models.py, with times of words. record_words.py FILE

Needs the package openai-whisper with PyTorch, which are not needed to compare: transcribe.py does that. The package's windows of 30 s, vocabulary and
multilayer perceptrons become those of the small models.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import tiktoken
import torch
import whisper
import whisper_models as wm
from whisper.tokenizer import Tokenizer

decoding, transcribing, whole = (importlib.import_module(f"whisper.{name}") for name in ("decoding", "transcribe", "version"))

# Name, the model's settings and seed, seconds of sound and its seed, language, and whether the heads are those that a file names.
CASES = [
    ("words", dict(), 12, 4.6, 1, "en", False),
    ("words, in German", dict(), 31, 7.3, 2, "de", True),
    ("words, long", dict(), 14, 9.3, 5, "en", True),
    ("words, long, all heads", dict(), 15, 13.77, 6, "fr", False),
    ("words, wider", dict(width=64, heads=8, layers=3, positions=64), 16, 11.0, 7, "de", True),
    ("words, 128 filters", dict(bins=128, seconds=4), 17, 15.5, 8, "en", False),
]
SCALE = 0.6


def model_of(c, seed, heads):
    dims = whisper.model.ModelDimensions(
        n_mels=c["num_mel_bins"], n_audio_ctx=c["max_source_positions"], n_audio_state=c["d_model"], n_audio_head=c["encoder_attention_heads"],
        n_audio_layer=c["encoder_layers"], n_vocab=c["vocab_size"], n_text_ctx=c["max_target_positions"], n_text_state=c["d_model"],
        n_text_head=c["decoder_attention_heads"], n_text_layer=c["decoder_layers"])
    model = whisper.model.Whisper(dims)
    for side, inner in ((model.encoder, c["encoder_ffn_dim"]), (model.decoder, c["decoder_ffn_dim"])):
        for block in side.blocks:
            linear = type(block.mlp[0])
            block.mlp = torch.nn.Sequential(linear(c["d_model"], inner), torch.nn.GELU(), linear(inner, c["d_model"]))
    model.load_state_dict({renamed(k): torch.from_numpy(v) for k, v in wm.weights(c, seed, SCALE).items()})
    if heads:
        mask = torch.zeros(c["decoder_layers"], c["decoder_attention_heads"], dtype=torch.bool)
        for layer, head in heads:
            mask[layer, head] = True
        model.register_buffer("alignment_heads", mask.to_sparse(), persistent=False)
    return model.eval()


def renamed(name):
    for theirs, ours in (("model.", ""), ("encoder.embed_positions.weight", "encoder.positional_embedding"),
                         ("decoder.embed_positions.weight", "decoder.positional_embedding"), ("embed_tokens", "token_embedding"),
                         ("layers", "blocks"), ("self_attn_layer_norm", "attn_ln"), ("encoder_attn_layer_norm", "cross_attn_ln"),
                         ("final_layer_norm", "mlp_ln"), ("self_attn", "attn"), ("encoder_attn", "cross_attn"), ("k_proj", "key"),
                         ("v_proj", "value"), ("q_proj", "query"), ("out_proj", "out"), ("fc1", "mlp.0"), ("fc2", "mlp.2"),
                         ("encoder.layer_norm", "encoder.ln_post"), ("decoder.layer_norm", "decoder.ln")):
        name = name.replace(theirs, ours)
    return name


class Bytes(Tokenizer):
    """A token for each byte. A space at the begin is token 220, as in the models' settings."""

    def encode(self, text, **_):
        return [220] if text == " " else list(text.encode())


def tokenizer_of(c, language):
    special = {"<|endoftext|>": wm.END, "<|startoftranscript|>": wm.START, **{f"<|{code}|>": i for code, i in wm.LANGUAGE.items()},
               "<|translate|>": wm.TRANSLATE, "<|transcribe|>": wm.TRANSCRIBE, "<|startoflm|>": wm.LM, "<|startofprev|>": wm.PREVIOUS,
               "<|nospeech|>": wm.NO_SPEECH, "<|notimestamps|>": wm.NO_TIMESTAMPS,
               **{f"<|{i * 0.02:.2f}|>": wm.TIMES + i for i in range(c["max_source_positions"] + 1)}}
    encoding = tiktoken.Encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens=special)
    made = Bytes(encoding=encoding, num_languages=len(wm.LANGUAGES))
    made.language = language
    made.sot_sequence = (wm.START, wm.LANGUAGE[language], wm.TRANSCRIBE)
    return made


def word_of(w):
    return [w["word"], round(float(w["start"]), 3), round(float(w["end"]), 3), round(float(w["probability"]), 4)]


def answer(name, settings, seed, seconds, sound_seed, language, named):
    c = wm.config(**settings)
    heads = [[layer, (layer + k) % c["decoder_attention_heads"]] for layer in range(c["decoder_layers"]) for k in (0, 2)][1:] if named else []
    max_length = c["max_target_positions"] // 2
    frames = 2 * c["max_source_positions"]
    for module in (decoding, transcribing):
        module.get_tokenizer = lambda *_, **__: tokenizer_of(c, language)
    decoding.CHUNK_LENGTH = frames / 100
    transcribing.N_FRAMES, transcribing.N_SAMPLES = frames, frames * 160
    sound = torch.from_numpy(wm.sound(seconds, sound_seed).astype(np.float32) / 32768)
    got = transcribing.transcribe(
        model_of(c, seed, heads), sound, temperature=0.0, compression_ratio_threshold=None, logprob_threshold=None, no_speech_threshold=None,
        condition_on_previous_text=False, word_timestamps=True, language=language, fp16=False, sample_len=max_length - 1,
        suppress_tokens=[int(i) for i in wm.generation_config(c)["suppress_tokens"]], max_initial_timestamp=0.4)
    segments = [{"start": round(s["start"], 3), "end": round(s["end"], 3), "tokens": s["tokens"], "words": [word_of(w) for w in s["words"]]}
                for s in got["segments"] if s["tokens"]]
    return {"name": name, "config": settings, "weights": seed, "scale": SCALE, "seconds": seconds, "sound": sound_seed, "language": language,
            "heads": heads, "max_length": max_length, "segments": segments}


def main():
    answers = [answer(*case) for case in CASES]
    head = {"made_by": f"openai-whisper {whole.__version__}, PyTorch {torch.__version__}", "cases": answers}
    lines = ",\n".join(json.dumps(a, ensure_ascii=False) for a in answers)
    Path(sys.argv[1]).write_text(f'{{"made_by": {json.dumps(head["made_by"])}, "cases": [\n{lines}\n]}}\n')
    for a in answers:
        print(a["name"], len(a["segments"]), "segments", sum(len(s["words"]) for s in a["segments"]), "words")


if __name__ == "__main__":
    main()
