"""Random tokenizers of true size, in the file formats of published ones."""
import json
import random
import struct

SPACE = "\u2581"
SPLIT = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                 r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
SPLIT["deepseek-r1-qwen"] = SPLIT["qwen2"]


def byte_alphabet():
    """The characters that byte-level tokens are spelled with."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]


def grow(tokens, count, letters):
    """Adds tokens, each an earlier one and one of `letters`, until there are `count`. Returns the pairs
    that they were made of. Few letters make tokens that can be cut in many ways."""
    draw = random.Random(1)
    words, known, pairs = list(letters), set(tokens), []
    for word in words:
        for letter in letters:
            both = word + letter
            if len(tokens) < count and both not in known and draw.random() < 0.7:
                known.add(both)
                tokens.append(both)
                words.append(both)
                pairs.append((word, letter))
    return pairs


def add_splits(tokens, pairs, count):
    """Adds pairs that make the same tokens, as converted tiktoken and SentencePiece files have them, up to `count`."""
    known, seen = set(tokens), set(pairs)
    for left, right in list(pairs):
        both = left + right
        for cut in range(1, len(both)):
            pair = both[:cut], both[cut:]
            if len(pairs) < count and pair not in seen and pair[0] in known and pair[1] in known:
                pairs.append(pair)
                seen.add(pair)
    assert len(pairs) == count, f"{len(pairs)} merges, not {count}"
    rank = {token: i for i, token in enumerate(tokens)}
    pairs.sort(key=lambda pair: rank[pair[0] + pair[1]])


class Tokenizer:
    """A random tokenizer as a row of the table describes it: tokens, merges, added tokens (text by id)."""

    def __init__(self, row):
        self.row = row
        if row["kind"] == "byte_level":
            self.tokens = byte_alphabet()
            self.merges = grow(self.tokens, row["tokens"], row["letters"])
            self.special = self.added()
        else:
            control = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
            pieces = [SPACE] + [chr(i) for i in [*range(33, 127), *range(0xC0, 0x250), *range(0x4E00, 0x5000)]]
            self.merges = grow(pieces, row["tokens"] - len(control), row["letters"])
            self.tokens = control + pieces
            self.special = {0: "<unk>", 1: "<s>", 2: "</s>"}
        if row.get("merges", len(self.merges)) != len(self.merges):
            add_splits(self.tokens, self.merges, row["merges"])

    def added(self):
        texts = [self.row[key] for key in ("bos", "eos") if key in self.row]
        texts += [f"<|reserved_special_token_{i}|>" for i in range(self.row["added"] - len(texts))]
        return {self.row["tokens"] + i: text for i, text in enumerate(texts)}

    def id_of(self, key):
        texts = {text: id for id, text in self.special.items()}
        return texts.get(self.row.get(key))

    def write(self, folder):
        config = {key + "_token": self.row.get(key) for key in ("bos", "eos")}
        config["chat_template"] = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
        if self.row["kind"] == "sentencepiece":
            (folder / "tokenizer.model").write_bytes(self.sentencepiece())
            config["add_bos_token"] = True
        else:
            text = json.dumps(self.document(), ensure_ascii=False, indent=2)
            (folder / "tokenizer.json").write_text(text, encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")

    def document(self):
        added = [{"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": False, "special": True} for id, text in self.special.items()]
        merges = [list(pair) if self.row.get("merges_as_lists") else " ".join(pair) for pair in self.merges]
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                 "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                 "ignore_merges": self.row.get("ignore_merges", False),
                 "vocab": {token: i for i, token in enumerate(self.tokens)}, "merges": merges}
        document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
        if self.row["kind"] == "byte_level":
            split = {"type": "Split", "pattern": {"Regex": SPLIT[self.row["pre"]]}, "behavior": "Isolated",
                     "invert": False}
            bytes_of = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
            nfc = None if self.row.get("ignore_merges") else {"type": "NFC"}
            document |= {"normalizer": nfc, "post_processor": self.template() or bytes_of, "decoder": bytes_of,
                         "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_of]}}
        else:
            model |= {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
            space = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
            back = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
            decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"},
                        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
            document |= {"normalizer": {"type": "Sequence",
                                        "normalizers": [{"type": "Prepend", "prepend": SPACE}, space]},
                         "pre_tokenizer": None, "post_processor": self.template(),
                         "decoder": {"type": "Sequence", "decoders": decoders}}
        return document | {"model": model}

    def template(self):
        """The post-processor that puts BOS in front of a text; None without BOS."""
        bos = self.row.get("bos")
        if not bos:
            return None
        text = {"Sequence": {"id": "A", "type_id": 0}}
        return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}}, text],
                "pair": [text], "special_tokens": {bos: {"id": bos, "ids": [self.id_of("bos")], "tokens": [bos]}}}

    def kinds(self):
        """SentencePiece's kind of each token: 1 normal, 2 unknown, 3 control, 6 byte."""
        return [2, 3, 3] + [6] * 256 + [1] * (len(self.tokens) - 259)

    def scores(self):
        return [0.0] * 259 + [-float(i) for i in range(len(self.tokens) - 259)]

    def sentencepiece(self):
        def varint(value):
            out = b""
            while value >= 0x80:
                out += bytes([value & 0x7F | 0x80])
                value >>= 7
            return out + bytes([value])

        def field(number, data):
            return varint(number << 3 | 2) + varint(len(data)) + data

        pieces = b"".join(
            field(1, field(1, token.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind]))
            for token, score, kind in zip(self.tokens, self.scores(), self.kinds()))
        trainer = b"\x18\x02" + b"\x20" + varint(len(self.tokens)) + b"\x98\x02\x01"  # BPE, size, bytes
        return pieces + field(2, trainer)
