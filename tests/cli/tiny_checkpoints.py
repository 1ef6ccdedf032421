"""Small checkpoints of training (src/train/checkpoint/checkpoint.fbs). Standard library only.

A FlatBuffer's table is a table of places of its fields, then the fields; what does not fit into a field stands behind, and the field
says how far. Here every field takes 8 bytes.
"""

import struct


class Buffer:
    def __init__(self):
        self.out = bytearray(struct.pack("<I4s", 0, b"ODTC"))

    def align(self, rest, before=0):
        self.out += b"\0" * ((rest - len(self.out) - before) % 8)

    def refer(self, field, place):
        struct.pack_into("<I", self.out, field, place - field)

    def table(self, fields):
        """Fields: None, ("q" or another letter of struct, number), text, bytes, list of ints or of tables (tuples of fields)."""
        self.align(4, 4 + 2 * len(fields))
        places = len(self.out)
        self.out += struct.pack("<HH", 4 + 2 * len(fields), 4 + 8 * len(fields))
        self.out += struct.pack(f"<{len(fields)}H", *(0 if f is None else 4 + 8 * i for i, f in enumerate(fields)))
        at = len(self.out)
        self.out += struct.pack("<i", at - places) + bytes(8 * len(fields))
        for i, value in enumerate(fields):
            field = at + 4 + 8 * i
            if isinstance(value, tuple) and value and isinstance(value[0], str) and len(value[0]) == 1 and len(value) == 2:
                struct.pack_into("<" + value[0], self.out, field, value[1])
            elif value is not None:
                self.refer(field, self.child(value))
        return at

    def child(self, value):
        if isinstance(value, tuple):
            return self.table(value)
        self.align(4)
        at = len(self.out)
        if isinstance(value, str):
            self.out += struct.pack("<I", len(value.encode())) + value.encode() + b"\0"
        elif isinstance(value, bytes):
            self.out += struct.pack("<I", len(value)) + value
        elif value and isinstance(value[0], tuple):
            self.out += struct.pack("<I", len(value)) + bytes(4 * len(value))
            for i, item in enumerate(value):
                self.refer(at + 4 + 4 * i, self.table(item))
        else:
            self.out += struct.pack(f"<I{len(value)}q", len(value), *value)
        return at


def tensor(name, *values):
    return (name, None, [len(values)], ("i", 1), struct.pack(f"<{len(values)}f", *values))


def checkpoint(trained, frozen=(), nominal=False, moments=(), epoch=None, version=2):
    b = Buffer()
    parameters = ([tensor(n, *v) for n, v in dict(trained).items()], [tensor(n, *v) for n, v in dict(frozen).items()],
                  ("b", int(nominal)))
    groups = [("group0", ("q", 20), ("f", 0.125), [(p, [tensor("momentum0", *v)]) for p, v in dict(moments).items()])] if moments else []
    properties = ([("epoch", ("q", epoch))], [("best", ("f", 0.5))], [("note", "tiny")]) if epoch is not None else None
    b.refer(0, b.table((("i", version), parameters, groups, properties)))
    return bytes(b.out)


def write_checkpoints(put):
    put("one.ckpt", checkpoint({"w": [1, 2], "b": [3]}, {"mean": [9]}, moments={"w": [5, 6]}, epoch=3))
    put("two.ckpt", checkpoint({"w": [3, 6], "b": [3]}, {"mean": [9]}))
    put("other.ckpt", checkpoint({"w": [1, 2], "c": [3]}, {"mean": [9]}))
    put("nominal.ckpt", checkpoint({"w": [1, 2], "b": [3]}, nominal=True))
    put("future.ckpt", checkpoint({"w": [1]}, version=9))
    put("cut.ckpt", checkpoint({"w": [1, 2]})[:-40])
