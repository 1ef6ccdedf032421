"""Tokenizer and WordConvEmbedding."""

import numpy as np


def tokenizer(r):
    words = np.array(["Hello World", "I love computer science !", "", "  a  b "], object)
    both = dict(mark=0, mincharnum=1, pad_value="<pad>")

    def case(name, x=words, **attrs):
        r.case("Tokenizer", [x], name=name, **{**both, **attrs})

    case("spaces", separators=[" "])
    case("spaces, marks", separators=[" "], mark=1)
    case("two axes", x=words.reshape(2, 2), separators=[" "])
    case("short tokens dropped", separators=[" "], mincharnum=2)
    case("several separators", separators=["o", "l+", "[ !]"])
    case("overlapping separators", x=np.array(["aabbab", "abab", "ba"], object), separators=["ab", "b"])
    case("characters", separators=[""])
    case("characters, marks", separators=[""], mark=1)
    case("characters by pattern", tokenexp=".")
    case("characters of several bytes", x=np.array(["\u00e4\u4e2d\U0001f600x", "ab"], object), separators=[""])
    case("pattern", tokenexp="[a-z]+")
    case("pattern, short tokens dropped", tokenexp="[a-zA-Z]+", mincharnum=3, mark=1)
    case("longest match", x=np.array(["foobar foo barfoo"], object), tokenexp="foo|foobar|bar")
    case("alternatives", x=np.array(["a-b_c", "de"], object), tokenexp="[a-z]|-")
    case("nothing is left", x=np.array(["   ", " "], object), separators=[" "])
    case("nothing is left, marks", x=np.array(["   ", " "], object), separators=[" "], mark=1)
    case("no strings", x=np.zeros((0,), object), separators=[" "])
    case("no strings, two axes", x=np.zeros((2, 0), object), separators=[" "])
    for text, message in (('{mark=0, mincharnum=1, pad_value=""}', "one of the attributes"), ('{mark=0, mincharnum=0, pad_value="", separators=[" "]}', "mincharnum is 0"),
                          ('{mark=0, mincharnum=1, pad_value="", separators=["("]}', "not a valid regular expression"),
                          ('{mark=0, mincharnum=2, pad_value="", separators=[""]}', "it must be 1")):
        r.fails("Tokenizer", f'input x: string[1] = "a"\ny = com.microsoft.Tokenizer(x) {text}\noutput y', message)
    r.fails("Tokenizer", 'input x: string[1] = "a\\xff"\ny = com.microsoft.Tokenizer(x) {mark=0, mincharnum=1, pad_value="", separators=[""]}\noutput y',
            "not valid UTF-8")


def words(r):
    ids = np.array([[3, 1, 4, 0], [2, 0, 0, 0], [5, 5, 5, 1]], np.int32)
    inputs = [ids, r.normal(5, 1, 2, 3), r.normal(5), r.normal(6, 3)]
    r.case("WordConvEmbedding", inputs, tolerance=(1e-4, 1e-5))
    r.case("WordConvEmbedding", inputs, name="attributes", embedding_size=5, conv_window_size=2, char_embedding_size=3, tolerance=(1e-4, 1e-5))


CASES = [tokenizer, words]
