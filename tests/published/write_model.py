#!/usr/bin/env python3
"""Writes a random copy of a model or head of tests/data/published.json: its keys, names, shapes and types; two layers.

usage: write_model.py TABLE NAME OUT hf|gguf|head [--cut N]

--cut divides the hidden sizes and those of heads. The vocabulary, the tokenizer and the numbers of heads stay as
they are. Prints a JSON object: parameters and bytes of the tensors.
"""
import argparse
import collections
import json
import math
import pathlib
import pickle
import random
import re
import struct
import sys
import types
import zipfile

import tokens

LAYERS = 2
BLOCK = 65521  # number of random values that are repeated: a prime, so that no two rows are equal
# Tensors of an EAGLE-3 head that hold ids: for each draft token the target's id minus its own, and which target ids are
# draft tokens.
IDS = {"d2t": "i64", "t2d": "bool"}
IDS_STORED = {"i64": ("I64", 8, "LongStorage"), "bool": ("BOOL", 1, "BoolStorage")}
FLOATS = {"f32": ("F32", 4, "FloatStorage"), "f16": ("F16", 2, "HalfStorage"), "bf16": ("BF16", 2, "BFloat16Storage")}
SIZES = ("hidden_size", "intermediate_size", "moe_intermediate_size", "head_dim", "embedding_length",
         "feed_forward_length", "key_length", "value_length", "dimension_count")


def stored(name, dtype):
    """Name, size and class of the type that a tensor is stored in."""
    return IDS_STORED[IDS[name]] if name in IDS else FLOATS[dtype]


def scaled(config, cut, layers):
    config = dict(config)
    for key, value in config.items():
        if isinstance(value, dict):
            config[key] = scaled(value, cut, layers)
        elif key.endswith(SIZES) and value:
            config[key] = value // cut
        elif key.endswith(("num_hidden_layers", "block_count")):
            config[key] = layers or value
    return config


def symbols(config):
    config = config | config.get("transformer_layer_config", {})
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    experts = config.get("num_local_experts") or config.get("num_experts", 0)
    taps = 3 * (config.get("target_hidden_size") or config["hidden_size"])
    return {"V": config["vocab_size"], "W": config.get("draft_vocab_size", 0), "T": taps, "H": config["hidden_size"], "2H": 2 * config["hidden_size"],
            "I": config["intermediate_size"], "Q": heads * size, "D": size, "R": size // 2, "E": experts,
            "K": (config.get("num_key_value_heads") or heads) * size, "M": config.get("moe_intermediate_size", 0)}


def tensors_of(layout, sizes, layers):
    for name, shape in layout.items():
        dims = [sizes[part] for part in shape.split()]
        for layer in range(layers) if "#" in name else [0]:
            for expert in range(sizes["E"]) if "*" in name else [0]:
                yield name.replace("#", str(layer)).replace("*", str(expert)), dims


def as_bytes(values, dtype):
    if dtype == "f16":
        return struct.pack(f"<{len(values)}e", *values)
    data = struct.pack(f"<{len(values)}f", *values)
    return data if dtype == "f32" else b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))


class Noise:
    """Bytes of random values: floats near 0, or 1 for norms; quantised blocks with a small scale."""

    def __init__(self):
        self.blocks = {}
        self.draw = random.Random(2)
        self.vocabularies = (0, 0)  # vocabulary sizes of the target and of its head

    def block(self, kind):
        if kind not in self.blocks:
            self.blocks[kind] = self.make(kind)
        return self.blocks[kind]

    def make(self, kind):
        if kind in FLOATS:
            return as_bytes([self.draw.gauss(0, 0.02) for _ in range(BLOCK)], kind)
        size, scales = QUANTS[kind][1:]
        one = []
        for _ in range(BLOCK // 64):
            data = bytearray(self.draw.randbytes(size))
            for at in scales:
                data[at:at + 2] = struct.pack("<e", self.draw.uniform(1e-4, 2e-4))
            one.append(bytes(data))
        return b"".join(one)

    def write_ids(self, out, name, vocab, draft_vocab):
        ids = [i * vocab // draft_vocab for i in range(draft_vocab)]
        if name == "d2t":
            out.write(struct.pack(f"<{len(ids)}q", *(target - i for i, target in enumerate(ids))))
        else:
            members = bytearray(vocab)
            for target in ids:
                members[target] = 1
            out.write(members)

    def write(self, out, name, kind, size):
        if name in IDS:
            self.write_ids(out, name, *self.vocabularies)
            return
        if name.endswith("norm.weight") or "rope_freqs" in name:
            out.write(as_bytes([1.0], kind) * (size // FLOATS[kind][1]))
            return
        block = self.block(kind)
        while size > 0:
            size -= out.write(block[:size])


# Elements and bytes of a block, and the offsets of its scales.
QUANTS = {"Q4_0": (32, 18, [0]), "Q8_0": (32, 34, [0]), "Q4_K": (256, 144, [0, 2]), "Q6_K": (256, 210, [208])}
GGML = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}


def write_safetensors(file, tensors, dtype, noise):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dims in tensors:
        kind, size, _ = stored(name, dtype)
        end = offset + size * math.prod(dims)
        header[name] = {"dtype": kind, "shape": dims, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, dims in tensors:
            noise.write(out, name, dtype, stored(name, dtype)[1] * math.prod(dims))


def write_shards(folder, tensors, dtype, files, noise):
    if files == 1:
        return write_safetensors(folder / "model.safetensors", tensors, dtype, noise)
    index = {}
    for i in range(files):
        part = tensors[i * len(tensors) // files:(i + 1) * len(tensors) // files]
        name = f"model-{i + 1:05}-of-{files:05}.safetensors"
        write_safetensors(folder / name, part, dtype, noise)
        index |= {tensor: name for tensor, _ in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


class Storage:
    def __init__(self, key, kind, count):
        self.id = ("storage", kind, str(key), "cpu", count)


class Tensor:
    def __init__(self, storage, dims):
        self.storage, self.dims = storage, dims

    def __reduce__(self):
        strides = [math.prod(self.dims[i + 1:]) for i in range(len(self.dims))]
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (self.storage, 0, tuple(self.dims), tuple(strides), False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None


def torch_modules(storages):
    """Puts stand-ins for the modules that a pickle of torch names into sys.modules, so that torch is not needed.
    Returns the classes of storages by their names."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch._utils = utils
    classes = {storage: type(storage, (), {"__module__": "torch"}) for storage in storages}
    for storage, made in classes.items():
        setattr(torch, storage, made)

    def _rebuild_tensor_v2(*_):
        raise NotImplementedError

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    sys.modules |= {"torch": torch, "torch._utils": utils}
    return classes


def write_torch(file, tensors, dtype, noise):
    classes = torch_modules({stored(name, dtype)[2] for name, _ in tensors})
    state = collections.OrderedDict(
        (name, Tensor(Storage(i, classes[stored(name, dtype)[2]], math.prod(dims)), dims))
        for i, (name, dims) in enumerate(tensors))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("pytorch_model/data.pkl", "w") as out:
            Pickler(out, 2).dump(state)
        for i, (name, dims) in enumerate(tensors):
            with archive.open(f"pytorch_model/data/{i}", "w", force_zip64=True) as out:
                noise.write(out, name, dtype, stored(name, dtype)[1] * math.prod(dims))
        archive.writestr("pytorch_model/version", "3\n")


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    kind, form = {str: (8, None), float: (6, "f"), int: (5, "i")}[type(value[0])]
    items = b"".join(map(gguf_string, value)) if form is None else struct.pack(f"<{len(value)}{form}", *value)
    return struct.pack("<IIQ", 9, kind, len(value)) + items


def gguf_tokenizer(row, vocabulary):
    """The keys of a tokenizer as llama.cpp's converters write them, with one token for each row of the embedding."""
    made = tokens.Tokenizer(row)
    keys = {f"tokenizer.ggml.{key}_token_id": made.id_of(key) for key in ("bos", "eos") if key in row}
    if row["kind"] != "byte_level":
        return keys | {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": made.tokens,
                       "tokenizer.ggml.scores": made.scores(), "tokenizer.ggml.token_type": made.kinds(),
                       "tokenizer.ggml.unknown_token_id": 0}
    texts = made.tokens + list(made.special.values())
    kinds = [1] * len(made.tokens) + [3] * len(made.special)
    for i in range(len(texts), vocabulary):
        texts.append(f"[PAD{i}]")
        kinds.append(5)
    return keys | {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": row["pre"], "tokenizer.ggml.tokens": texts,
                   "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.merges": [" ".join(m) for m in made.merges]}


def gguf_type(name, dims, types_of):
    if len(dims) == 1:
        return "F32"
    pattern = re.sub(r"^blk\.\d+", "blk.#", name)
    kind = types_of.get(name) or types_of.get(pattern) or types_of["*"]
    # As in llama.cpp, if a row is not a whole number of blocks.
    return "Q8_0" if kind in QUANTS and dims[-1] % QUANTS[kind][0] else kind


def type_bytes(kind, count):
    if kind in QUANTS:
        return count // QUANTS[kind][0] * QUANTS[kind][1]
    return count * FLOATS[kind.lower()][1]


def write_gguf(file, tensors, keys, types_of, noise):
    typed = [(name, dims, gguf_type(name, dims, types_of)) for name, dims in tensors]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(typed), len(keys))
    head += b"".join(gguf_string(key) + gguf_value(value) for key, value in keys.items())
    offset = total = 0
    for name, dims, kind in typed:
        head += gguf_string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *reversed(dims))
        head += struct.pack("<IQ", GGML[kind], offset)
        size = type_bytes(kind, math.prod(dims))
        offset += size + -size % 32
        total += size
    with file.open("wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for name, dims, kind in typed:
            size = type_bytes(kind, math.prod(dims))
            noise.write(out, name, kind.lower() if kind.lower() in FLOATS else kind, size)
            out.write(bytes(-size % 32))
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("format", choices=["hf", "gguf", "head"])
    parser.add_argument("--cut", type=int, default=1)
    args = parser.parse_args()
    table = json.loads(args.table.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in table["heads" if args.format == "head" else "targets"]}
    row, noise = rows[args.name], Noise()
    layers = None if args.format == "head" else LAYERS
    config = scaled(row["config"], args.cut, layers)
    layout = table["layouts"][row["gguf"]["layout"] if args.format == "gguf" else row["layout"]]
    sizes = symbols(config)
    noise.vocabularies = (sizes["V"], sizes["W"])
    tensors = list(tensors_of(layout, sizes, layers or 1))
    tied = config.get("tie_word_embeddings")
    absent = ["lm_head.weight", "output.weight"] if tied else []
    absent += ["fc.bias"] if not row.get("fc_bias", True) else []
    absent += row.get("absent", [])
    tensors = [tensor for tensor in tensors if tensor[0] not in absent]
    parameters = sum(math.prod(dims) for name, dims in tensors if "rope_freqs" not in name)
    total = sum(math.prod(dims) * stored(name, row["dtype"])[1] for name, dims in tensors)
    if args.format == "gguf":
        keys = scaled(row["gguf"]["keys"], args.cut, LAYERS)
        keys |= gguf_tokenizer(table["tokenizers"][row["tokenizer"]], config["vocab_size"])
        total = write_gguf(args.out, tensors, keys, row["gguf"]["types"], noise)
    else:
        args.out.mkdir(parents=True)
        (args.out / "config.json").write_text(json.dumps(config, indent=2))
        if args.format == "hf":
            tokens.Tokenizer(table["tokenizers"][row["tokenizer"]]).write(args.out)
        if row.get("file") == "pytorch_model.bin":
            write_torch(args.out / row["file"], tensors, row["dtype"], noise)
        else:
            write_shards(args.out, tensors, row["dtype"], row.get("files", 1), noise)
    print(json.dumps({"parameters": parameters, "bytes": total}))


if __name__ == "__main__":
    main()
