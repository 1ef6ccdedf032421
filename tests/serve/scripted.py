"""Language models whose answers are known, for tests of interfaces: attention and feed-forward weights are zero, so the next token is looked up by
the last one. A script is a list of pieces, each a token of its own; a prompt that ends in the script's letter gets it as the answer."""

import struct

import tiny_models

# One token for each byte, so that prompts can be counted. The last letter chooses the script.
TEMPLATE = ("{% if tools %}[{{ tools | length }} tools]{% endif %}{% if enable_thinking is defined and not enable_thinking %}[plain]{% endif %}"
            "{% for m in messages %}{{ m.role }}:{{ m.content }}{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
            "{% for c in m.tool_calls or [] %}<{{ c.function.name }}{{ c.function.arguments | tojson }}>{% endfor %}{{ '\\n' }}{% endfor %}"
            "={{ (messages | selectattr('role', 'ne', 'system') | list)[-1].content[-1:] }}")

CALL = ["<tool_call>", '{"name": "weather", ', '"arguments": {"place": ', '"Paris"}}', "</tool_call>"]
SCRIPTS = {
    "a": ["Hello", " there,", " my", " friend."],
    "t": ["<think>", "Let me", " see.", "</think>", "It is", " four."],
    "c": ["I look.", *CALL],
    "p": [*CALL, *CALL],
    "r": ["<think>", "A tool.", "</think>", *CALL],
    "j": ['{"place": ', '"Paris"}'],
    "u": ["gr\u00fc\u00df", "e \U0001f600"],
    "n": ["No."],
}


def bytes_as_letters(text):
    """A text in the letters that GPT-2's vocabularies have for bytes."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [b for b in range(256) if b not in plain]
    return "".join(chr(b) if b in plain else chr(256 + others.index(b)) for b in text.encode())


def scripted(scripts=None, context=2000, template=TEMPLATE) -> bytes:
    words, following = tiny_models.alphabet(), {}
    for letter, pieces in (scripts or SCRIPTS).items():
        last = words.index(bytes_as_letters(letter))
        for word in (w for piece in pieces for w in unused(bytes_as_letters(piece), words)):
            following[last] = len(words)
            last = len(words)
            words.append(word)
    end = len(words)
    words.append("<end>")
    width = -(-len(words) // 32) * 32
    embeddings, outputs = bytearray(4 * width * len(words)), bytearray(4 * width * len(words))
    for token in range(len(words)):
        struct.pack_into("<f", embeddings, 4 * (token * width + token), 1)
        struct.pack_into("<f", outputs, 4 * (following.get(token, end) * width + token), 10)
    tensors = {"token_embd": ((width, len(words)), bytes(embeddings)), "output": ((width, len(words)), bytes(outputs)),
               "output_norm": ((width,), struct.pack("<f", 1) * width)}
    for name, shape in {"attn_norm": (width,), "attn_q": (width, 32), "attn_k": (width, 32), "attn_v": (width, 32), "attn_output": (32, width),
                        "ffn_norm": (width,), "ffn_gate": (width, 32), "ffn_up": (width, 32), "ffn_down": (32, width)}.items():
        tensors[f"blk.0.{name}"] = (shape, bytes(4 * shape[0] * (shape[1] if len(shape) > 1 else 1)))
    return written(words, tensors, {"context_length": context, "embedding_length": width, "block_count": 1, "feed_forward_length": 32,
                                    "attention.head_count": 1, "attention.head_count_kv": 1, "attention.key_length": 32,
                                    "attention.value_length": 32, "rope.dimension_count": 32}, template)


def unused(word, words):
    """The word, or two that are it together: a vocabulary has each word once, and each has one that follows it."""
    if word not in words:
        return [word]
    return next([word[:at], word[at:]] for at in range(2, len(word) - 1) if word[:at] not in words and word[at:] not in words)


def written(words, tensors, numbers, template):
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()

    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama"),
            text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-6)]
    keys += [text(f"llama.{name}") + struct.pack("<II", 4, value) for name, value in numbers.items()]
    keys += [text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"),
             text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words)),
             text("tokenizer.ggml.token_type") + struct.pack(f"<IIQ{len(words)}i", 9, 5, len(words), *[1] * (len(words) - 1), 3),
             text("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, 0),
             text("tokenizer.ggml.eos_token_id") + struct.pack("<II", 4, len(words) - 1),
             text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template)]
    infos, data = b"", b""
    for name, (shape, values) in tensors.items():
        infos += text(name + ".weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += values + b"\0" * (-len(values) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + infos
    return head + b"\0" * (-len(head) % 32) + data
