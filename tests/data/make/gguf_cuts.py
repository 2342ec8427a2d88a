#!/usr/bin/env python3
"""Writes tests/data/gguf/cuts.json: how llama.cpp cuts texts into tokens for each name of tokenizer.ggml.pre.

usage: gguf_cuts.py NAMES OUT.json    with llama-tokenize in PATH, and Python's gguf and tokenizers
NAMES are those that `aerie` knows, separated by spaces. The vocabulary is trained on the texts without any cuts, so
that tokens reach across every place where one may be missing."""
import json
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import gguf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SEPARATOR = "<|text|>"
TEXTS = [
    "Hello, world!", "hello world", " leading", "trailing ", "trailing  ", "   three", "a  b   c    d", "\ta\t\tb", "a\nb",
    "a\n\nb\n", "\n\n\n", "a \n b", "a\r\nb\r\n", "  \n  x", "x.\n\ny", "!!\n!!\n\n", "end.\r\n", "a/\nb//\n/", "path/to/file\n/x",
    "I'm you're he'll we've they'd it's don't", "I'M YOU'RE HE'LL WE'VE THEY'D IT'S DON'T", "I'mhere 'sup 'Tis", "it\u2019s",
    "Ankara'ya \u0130stanbul'da", "1", "12", "123", "1234", "12345", "123456", "1234567890", "3.14159", "1,234,567.89", "a1b22c333d4444",
    " 1 22 333 4444", "x=1;y=22;z=333", "2024-01-02T03:04:05Z", "$12.50 + 7% = 20", "\u0663\u0664\u0665\u0666", "\u00bd \u00bc\u2167\u216b", "\u4e09\u56db12",
    "camelCaseWord", "HTTPServer", "XMLHttpRequest2", "SCREAMING_SNAKE", "iPhone's", "aB", "Ab", "ABc dEF", "\u01c5\u01c8",
    "if (x == y) { return; }", "a->b::c<d>", "x+=1; y<<=2", "<|not|> [a](b) `c` ~~d~~ ^e^ |f|", "foo(bar)[baz]{qux}", "...---===***",
    "#!/bin/sh -e", "a\\b\"c\"", "#include <stdio.h>\n\nint main() {\n    return 0;\n}\n", "    indented\n        more\n", "e.g. U.S.A.",
    "caf\u00e9 na\u00efve", "cafe\u0301 nai\u0308ve", "\u0438\u0439 \u0438\u0306", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u03b1\u03b2\u03b3 \u1f7d\u1fd3 \u1fdb", "\u10d0\u10d1\u10d2 \u10a0\u10a1", "\u0561\u0562 \u0531\u0532",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30ab\u30bf\u30ab\u30ca", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5", "\u4e2d\u6587abc123", "abc\u4e2d\u6587", "\u300c\u5f15\u7528\u300d\u3001\u300e\u540d\u300f", "\uff21\uff22\uff11\uff12\uff01",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0645\u0631\u062d\u0628\u0627\u060c \u0643\u064e\u064a\u0652\u0641", "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "\U0001f600\U0001f680 \U0001f469\u200d\U0001f4bb", "\u2600\ufe0f \u2192 \u221e \u00b1", "\u20ac5 \u00a33",
    "a\u00a0b\u00a0\u00a0c", "a\u2003b", "a\u200bb", "a\u3000\u3000b", "\u0000\u0001 \u001b[0m", "x" * 20, "=" * 17, " " * 9, "\n" * 5 + " ", " " * 33 + "x", "\t \t \n \t",
    "The quick brown fox jumps over the lazy dog. The quick brown fox.", "(1) one; (2) two; (3) three", "word.Another;third", "a-b_c d-e_f",
    "'quoted' \"double\" 's 't", "\u00ab guillemets \u00bb \u2013 dash \u2014", "50% off!!! Really???", "user@example.com https://example.com/a?b=c&d=e#f",
]  # fmt: skip


def is_cut_otherwise(name, text):
    """Whether the tokenizer.json that the name stands for cuts this text in another way than llama.cpp: it counts marks
    as letters, normalises the text, or lets digits stand alone."""
    kinds = [unicodedata.category(character)[0] for character in text]
    if name in ("tekken", "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"):
        return "M" in kinds
    if name in ("qwen2", "deepseek-r1-qwen"):
        return unicodedata.normalize("NFC", text) != text
    return name == "deepseek-llm" and "NN" in "".join(kinds)


def vocabulary():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS + [a + b for a in TEXTS[:60:3] for b in TEXTS[1:60:4]], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].get), merges


def write(path, name, tokens, merges):
    writer = gguf.GGUFWriter(path, "llama")
    for key in ("context_length", "embedding_length", "block_count", "feed_forward_length", "head_count"):
        getattr(writer, "add_" + key)(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(name)
    writer.add_token_list(tokens + [SEPARATOR])
    writer.add_token_types([1] * len(tokens) + [3])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens))
    writer.add_add_bos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def ids_of(name, tokens, merges, folder):
    model, text = folder / "m.gguf", folder / "texts"
    write(model, name, tokens, merges)
    text.write_bytes(SEPARATOR.join(TEXTS).encode())
    command = ["llama-tokenize", "-m", model, "-f", text, "--ids", "--no-bos", "--no-escape", "--log-disable"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    lists = [[]]
    for token in json.loads(done.stdout.strip().splitlines()[-1]):
        if token == len(tokens):
            lists.append([])
        else:
            lists[-1].append(token)
    assert len(lists) == len(TEXTS), (name, len(lists))
    return lists


def main():
    names, out = sys.argv[1].split(), sys.argv[2]
    tokens, merges = vocabulary()
    cuts = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            ids = ids_of(name, tokens, merges, Path(folder))
            if ids is None:
                print("refused:", name)
                continue
            ids = [None if is_cut_otherwise(name, text) else own for text, own in zip(TEXTS, ids)]
            for cut in cuts:
                if cut["ids"] == ids:
                    cut["names"].append(name)
                    break
            else:
                cuts.append({"names": [name], "ids": ids})
    document = {"tokens": tokens, "merges": merges, "texts": TEXTS, "cuts": cuts}
    with open(out, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(k)}: " + (
            "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in v) + "]" if k == "cuts"
            else json.dumps(v, separators=(",", ":"))) for k, v in document.items()) + "}\n")


main()
