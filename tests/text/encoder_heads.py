#!/usr/bin/env python3
"""Heads of tiny random encoders: scores of pairs, weights of words, vectors of tokens, against numpy and against transformers.

usage: encoder_heads.py SDX

Exit code 77: numpy is missing. Networks and files are those of encoders.py.
"""

import json
import math
import pathlib
import struct
import subprocess
import sys

from hugging_face_folders import config_of, tensors_of
from hugging_face_folders import write_folder as write_language_folder
from encoders import (CONTEXT, FF, HEADS, IDS, LAYERS, SDX, TEXTS, VOCABULARY, WIDTH, WINDOW, WORDS, Encoder, Model, compare, embed, key,
                      np, scratch, write_folder, write_gguf, write_vocabulary)


QUERY = [2, 6, 8, 3]  # "a dog"
PAIRS = [(QUERY + ids[1:], [0] * len(QUERY) + [1] * (len(ids) - 1)) for ids in IDS]


def check_ranks(name: str, model: pathlib.Path, logits, *flags):
    """`logits`: of the documents; two numbers of one are those of two classes."""
    command = [SDX, "rerank", str(model), "-q", "a dog", "--json", *flags]
    done = subprocess.run(command, input="\n".join(TEXTS) + "\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    results = json.loads(done.stdout)["results"]
    logits = np.array([l[-1] - (l[0] if len(l) == 2 else 0.0) for l in logits])
    expected = 1 / (1 + np.exp(-logits))
    # Of small scores the logarithm, which is the logit.
    worst = max(max(abs(r["score"] - expected[r["index"]]), abs(math.log(r["score"] / expected[r["index"]]))) for r in results)
    assert worst < 5e-5 and np.std(logits) > 0.1, f"{name}: off by {worst}, scores {expected}"
    assert [r["index"] for r in results] == list(np.argsort(-logits)), name
    print(f"{name}: scores off by {worst:.1e}, logits spread by {np.std(logits):.2f}", flush=True)


def check_rerankers(root: pathlib.Path):
    for name, classes in (("bert", 1), ("modern-bert", 1), ("bert", 2)):
        model = Encoder(name, 30 + classes)
        model.add_head(classes)
        expected = [model.scores(*pair) for pair in PAIRS]
        write_gguf(root / "m.gguf", model, 4)
        check_ranks(f"{name}.gguf, {classes} classes", root / "m.gguf", expected)
    check_ranks("texts apart", root / "m.gguf", expected, "--batch", "1")
    message = embed(root / "m.gguf")
    assert isinstance(message, str) and "is a reranker" in message, message
    write_gguf(root / "m.gguf", Encoder("bert", 33), 1)
    done = subprocess.run([SDX, "rerank", str(root / "m.gguf"), "-q", "a"], input="the cat\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "no head for classes" in done.stderr, done.stderr
    check_question(root)


def check_question(root: pathlib.Path):
    """Qwen3-Reranker: what it is asked, and by how much "yes" is likelier than "no"; also of a document that is too long."""
    form = "slow {query} on [SEP] {document} [MASK] yes"
    model = Model("qwen3", norms=True, size=32, rotary=32, eps=1e-6, tied=False, seed=43, context=16)
    rng = np.random.default_rng(44)
    matrix = (rng.standard_normal((2, 64)) / 2).astype(np.float32)
    model.file.add("cls.output.weight", matrix.shape, matrix.tobytes(), 0)
    model.file.set("pooling_type", 4)
    for name, value in (VOCABULARY | {"tokenizer.chat_template.rerank": form}).items():
        model.file.keys.append(key(name, value))
    model.file.write(root / "m.gguf")
    asked = [[16, 6, 8, 11, 3, *ids[1:-1]][:14] + [4, 22] for ids in IDS]
    assert max(map(len, asked)) == 16
    expected = [np.flip(model.hidden(ids)[-1] @ matrix.T.astype(np.float64)) for ids in asked]
    check_ranks("qwen3.gguf, yes or no", root / "m.gguf", expected)
    model.file.tensors = [t for t in model.file.tensors if t[0] != "cls.output.weight"]
    model.file.write(root / "m.gguf")
    check_ranks("qwen3.gguf, without a head", root / "m.gguf", [model.logits(ids)[-1][[23, 22]] for ids in asked])


PAIR_FORM = """{%- set instruction = messages | selectattr("role", "eq", "system") | map(attribute="content") | first | default("fast") -%}
{%- set q = messages | selectattr("role", "eq", "query") | map(attribute="content") | first -%}
{{ instruction }} {{ q }} on [SEP] {% for m in messages %}{% if m.role == "document" %}{{ m.content }} [MASK]{% endif %}{% endfor -%}
{% if add_generation_prompt %} yes{% endif %}"""


def check_causal_modules(root: pathlib.Path):
    """What sentence-transformers writes of a language model that ranks: the tokens that count, and a chat template for pairs."""
    model = Model("qwen3", norms=True, size=32, rotary=32, eps=1e-6, tied=False, seed=45, context=16)
    folder = root / "causal"
    write_language_folder(folder, config_of(model) | {"max_position_embeddings": 16}, tensors_of(model))
    write_vocabulary(folder)
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
               {"idx": 1, "name": "1", "path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "chat_template.jinja").write_text(PAIR_FORM)
    (folder / "1_LogitScore").mkdir()
    bert = {"processing_kwargs": {"chat_template": {"add_generation_prompt": True}},
            "modality_config": {"message": {"method": "forward", "format": "flat"}}}
    (folder / "sentence_bert_config.json").write_text(json.dumps(bert))

    def asked(first: int, end):
        return [[first, 6, 8, 11, 3, *ids[1:-1]][:16 - len(end)] + end for ids in IDS]

    def score(tokens):
        (folder / "1_LogitScore" / "config.json").write_text(json.dumps(tokens))

    score({"true_token_id": 7, "false_token_id": 9})
    check_ranks("two tokens", folder, [model.logits(ids)[-1][[9, 7]] for ids in asked(15, [4, 22])])
    score({"true_token_id": 12, "false_token_id": None})
    check_ranks("one token", folder, [model.logits(ids)[-1][[12]] for ids in asked(15, [4, 22])])
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"usual": "small"}, "default_prompt_name": "usual"}))
    (folder / "sentence_bert_config.json").unlink()
    check_ranks("its prompt", folder, [model.logits(ids)[-1][[12]] for ids in asked(18, [4])])
    message = embed(folder)
    assert isinstance(message, str) and "ranks documents" in message, message
    for template, tokens, part in ((PAIR_FORM, {"false_token_id": 3}, "true_token_id"), (PAIR_FORM, {"true_token_id": 999}, "999")):
        (folder / "chat_template.jinja").write_text(template)
        score(tokens)
        done = subprocess.run([SDX, "rerank", str(folder), "-q", "a"], input="the cat\n", capture_output=True, text=True, timeout=300)
        assert done.returncode == 1 and part in done.stderr, done.stderr
    # A template for chats alone shows neither message: Qwen3's own question is asked, whose words this vocabulary lacks.
    (folder / "chat_template.jinja").write_text("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
    score({"true_token_id": 7})
    done = subprocess.run([SDX, "rerank", str(folder), "-q", "a"], input="the cat\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def other_kind(model: pathlib.Path, kind: str, *flags):
    command = [SDX, "embed", str(model), "--kind", kind, *flags]
    done = subprocess.run(command, input="\n".join(TEXTS) + "\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_sparse(name: str, model: pathlib.Path, expected):
    """`expected`: a weight of each word for each text."""
    made = np.zeros((len(TEXTS), len(WORDS)))
    for line in other_kind(model, "sparse"):
        assert line["indices"] == sorted(line["indices"]) and all(v > 0 for v in line["values"])
        made[line["index"], line["indices"]] = line["values"]
    assert (np.array(expected) == 0).any(), name
    compare(f"{name}, sparse", made, np.array(expected))


def check_tokens(name: str, model: pathlib.Path, expected, *flags):
    for line, vectors in zip(other_kind(model, "tokens", *flags), expected):
        compare(f"{name}, text {line['index']}", np.array(line["embeddings"]), vectors)


def write_linear(path: pathlib.Path, weight, bias):
    header = {"weight": {"dtype": "F32", "shape": weight.shape, "data_offsets": [0, weight.nbytes]},
              "bias": {"dtype": "F32", "shape": bias.shape, "data_offsets": [weight.nbytes, weight.nbytes + bias.nbytes]}}
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + weight.tobytes() + bias.tobytes())


def check_other_kinds(root: pathlib.Path):
    """SPLADE, ColBERT, and BGE-M3's heads."""
    model, rng = Encoder("bert", 50), np.random.default_rng(51)
    draw = lambda *shape: (rng.standard_normal(shape) / 8).astype(np.float32)
    unit = lambda v: v / np.linalg.norm(v, axis=-1, keepdims=True)
    dense, bias, out = draw(WIDTH, WIDTH), draw(WIDTH), draw(len(WORDS)) - 1
    words = {"cls.predictions.transform.dense.weight": dense, "cls.predictions.transform.dense.bias": bias,
             "cls.predictions.transform.LayerNorm.weight": 1 + draw(WIDTH), "cls.predictions.transform.LayerNorm.bias": draw(WIDTH),
             "cls.predictions.bias": out, "cls.predictions.decoder.bias": out}
    write_folder(root / "splade", model, lambda c, t: t.update(words))
    expected, tokens = [], [model.tokens(ids) for ids in IDS]
    for x in tokens:
        x = x @ dense.T.astype(np.float64) + bias
        x = 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
        x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
        x = x * words["cls.predictions.transform.LayerNorm.weight"] + words["cls.predictions.transform.LayerNorm.bias"]
        expected.append(np.log1p(np.maximum(x @ model.w["token_embd.weight"].T.astype(np.float64) + out, 0)).max(axis=0))
    check_sparse("bert", root / "splade", expected)
    matrix = draw(16, WIDTH)
    write_folder(root / "colbert", model, lambda c, t: t.update({"linear.weight": matrix}))
    check_tokens("ColBERT", root / "colbert", [unit(x @ matrix.T) for x in tokens])
    check_tokens("ColBERT, not normalised, 5 dimensions", root / "colbert", [(x @ matrix.T)[:, :5] for x in tokens], "--no-normalize",
                 "--dimensions", "5")
    write_folder(root / "m3", model)
    matrix, shift, row = draw(WIDTH, WIDTH), draw(WIDTH), 4 * draw(1, WIDTH)
    add = np.array([-np.mean(np.concatenate(tokens) @ row[0])], np.float32)  # half of all weights are above 0
    write_linear(root / "m3" / "colbert_linear.safetensors", matrix, shift)
    write_linear(root / "m3" / "sparse_linear.safetensors", row, add)
    check_tokens("BGE-M3", root / "m3", [unit(x[1:] @ matrix.T + shift) for x in tokens])
    expected = np.zeros((len(IDS), len(WORDS)))
    for i, (ids, x) in enumerate(zip(IDS, tokens)):
        for token, weight in list(zip(ids, (x @ row[0] + add[0])))[1:-1]:
            expected[i, token] = max(expected[i, token], weight)
    check_sparse("BGE-M3", root / "m3", expected)


def check_reranker_folders(root: pathlib.Path):
    try:
        import torch
        import transformers as t
    except ImportError:
        return
    sizes = dict(vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                 max_position_embeddings=CONTEXT)
    modern = dict(local_attention=WINDOW, pad_token_id=0)
    few = dict(num_key_value_heads=2, head_dim=32, pad_token_id=0)
    for seed, (name, config) in enumerate((
            ("Bert", t.BertConfig(**sizes, num_labels=1)), ("Bert", t.BertConfig(**sizes, num_labels=2)),
            ("Roberta", t.RobertaConfig(**sizes, num_labels=1, type_vocab_size=2)),
            ("XLMRoberta", t.XLMRobertaConfig(**sizes, num_labels=1, pad_token_id=0, type_vocab_size=2)),
            ("ModernBert", t.ModernBertConfig(**sizes, **modern, num_labels=1)),
            ("ModernBert", t.ModernBertConfig(**sizes, **modern, num_labels=1, classifier_pooling="mean", classifier_bias=True)),
            ("Llama", t.LlamaConfig(**sizes, **few, num_labels=1)))):
        torch.manual_seed(seed)
        model = getattr(t, name + "ForSequenceClassification")(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            folder = root / f"{name}{seed}"
            model.save_pretrained(folder)
            types = lambda kinds: {} if name in ("ModernBert", "Llama") else {"token_type_ids": torch.tensor([kinds])}
            expected = [model(torch.tensor([ids]), **types(kinds)).logits[0].numpy().astype(np.float64) for ids, kinds in PAIRS]
        write_vocabulary(folder)
        check_ranks(f"{name}ForSequenceClassification", folder, expected)


def check_words(root: pathlib.Path):
    try:
        import torch
        import transformers as t
    except ImportError:
        return
    sizes = dict(vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=FF, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                 max_position_embeddings=CONTEXT)
    for seed, (config, kind) in enumerate(((t.BertConfig(**sizes), t.BertForMaskedLM),
                                           (t.XLMRobertaConfig(**sizes, pad_token_id=0), t.XLMRobertaForMaskedLM),
                                           (t.ModernBertConfig(**sizes, local_attention=WINDOW, pad_token_id=0), t.ModernBertForMaskedLM))):
        torch.manual_seed(seed)
        model = kind(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            folder = root / kind.__name__
            model.save_pretrained(folder)
            expected = [np.log1p(np.maximum(model(torch.tensor([ids])).logits[0].numpy().max(axis=0), 0)) for ids in IDS]
            dense = [model.base_model(torch.tensor([ids])).last_hidden_state[0].numpy().mean(axis=0) for ids in IDS]
        write_vocabulary(folder)
        check_sparse(kind.__name__, folder, expected)
        compare(f"{kind.__name__}, one vector", embed(folder), np.stack(dense))


def main():
    with scratch() as root:
        check_rerankers(root)
        check_causal_modules(root)
        check_other_kinds(root)
        check_reranker_folders(root)
        check_words(root)


if __name__ == "__main__":
    main()
