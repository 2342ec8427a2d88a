#!/usr/bin/python3
"""Trains the drafters of the bundled model other than its EAGLE heads: Medusa and Hydra heads that reuse
its LM head, and a draft model of 0.9 M parameters. They learn from texts that the model writes itself,
by fixed seeds. Needs PyTorch (Debian: python3-torch, libopenblas0-pthread); under half an hour on two
cores.

    nice -n 10 tests/data/make/bundled_heads.py build/aerie models
"""
import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

BOS, EOS = 1, 2
TEXTS, TEXT_LENGTH, ROUNDS = 256, 320, 8      # the texts of a round are generated as one batch
TEMPERATURES = (1.0, 0.8, 0.5, 0.2)            # cycled over the texts, after FREE_TOKENS tokens at 1
FREE_TOKENS = 8
MEDUSA_HEADS, HYDRA_HEADS = 4, 3
DRAFT = {"hidden": 128, "ffn": 384, "layers": 2, "heads": 2, "kv_heads": 1}
HEAD_DIM, THETA, EPSILON = 64, 10000.0, 1e-5
HEAD_STEPS, HEAD_TEXTS, HEAD_WINDOW = 1000, 8, 128
DRAFT_STEPS, DRAFT_TEXTS, DRAFT_WINDOW = 800, 8, 256


def read_tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F16", name
        first, last = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + size + first:8 + size + last]), dtype=torch.float16)
        tensors[name] = flat.reshape(entry["shape"]).float()
    return tensors


def write_tensors(path, tensors):
    header, blocks, at = {}, [], 0
    for name, tensor in tensors.items():
        block = tensor.detach().half().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [at, at + len(block)]}
        blocks.append(block)
        at += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def rotate(x, positions):
    """RoPE of x [..., positions, HEAD_DIM]."""
    half = HEAD_DIM // 2
    angles = positions[:, None].float() * THETA ** (-torch.arange(half).float() / half)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


class Llama:
    """A LLaMA over a dictionary of its tensors, as transformers names them."""

    def __init__(self, tensors, layers, heads, kv_heads):
        self.tensors, self.layers, self.heads, self.kv_heads = tensors, layers, heads, kv_heads

    def lm_head(self):
        return self.tensors.get("lm_head.weight", self.tensors["model.embed_tokens.weight"])

    def features(self, ids, cache=None, first=0):
        """Hidden states [texts, positions, hidden] after the final norm; `cache` holds keys and values by layer."""
        t, (texts, count) = self.tensors, ids.shape
        x = F.embedding(ids, t["model.embed_tokens.weight"])
        positions = torch.arange(first, first + count)
        for layer in range(self.layers):
            name = f"model.layers.{layer}."
            y = norm(x, t[name + "input_layernorm.weight"])
            parts = [F.linear(y, t[f"{name}self_attn.{part}_proj.weight"])
                     .view(texts, count, -1, HEAD_DIM).transpose(1, 2) for part in "qkv"]
            q, k, v = rotate(parts[0], positions), rotate(parts[1], positions), parts[2]
            if cache is not None:
                keys, values = cache[layer]
                keys[:, :, first:first + count], values[:, :, first:first + count] = k, v
                k, v = keys[:, :, :first + count], values[:, :, :first + count]
            q = q.reshape(texts, self.kv_heads, -1, HEAD_DIM)  # the queries of one KV head in one matrix
            scores = q @ k.transpose(2, 3) / HEAD_DIM ** 0.5
            if cache is None:
                mask = torch.full((count, count), float("-inf")).triu(1)
                scores = scores + mask.repeat(self.heads // self.kv_heads, 1)
            y = (torch.softmax(scores, -1) @ v).view(texts, self.heads, count, HEAD_DIM)
            y = y.transpose(1, 2).reshape(texts, count, -1)
            x = x + F.linear(y, t[name + "self_attn.o_proj.weight"])
            y = norm(x, t[name + "post_attention_layernorm.weight"])
            gate, up = (F.linear(y, t[f"{name}mlp.{part}_proj.weight"]) for part in ("gate", "up"))
            x = x + F.linear(F.silu(gate) * up, t[name + "mlp.down_proj.weight"])
        return norm(x, t["model.norm.weight"])


def write_texts(target, seed):
    """TEXTS sampled texts: ids, features, and which positions count (those not after EOS), by text and position."""
    torch.manual_seed(seed)
    hidden = target.lm_head().shape[1]
    ids = torch.full((TEXTS, TEXT_LENGTH), BOS)
    features = torch.zeros(TEXTS, TEXT_LENGTH, hidden, dtype=torch.float16)
    shape = (TEXTS, target.kv_heads, TEXT_LENGTH, HEAD_DIM)
    cache = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(target.layers)]
    temperature = torch.tensor(TEMPERATURES).repeat(TEXTS)[:TEXTS, None]
    live = torch.ones(TEXTS, TEXT_LENGTH, dtype=torch.bool)
    for at in range(TEXT_LENGTH):
        state = target.features(ids[:, at:at + 1], cache, at)[:, 0]
        features[:, at] = state.half()
        if at + 1 == TEXT_LENGTH:
            break
        logits = F.linear(state, target.lm_head())
        if at >= FREE_TOKENS:
            logits = logits / temperature
        ids[:, at + 1] = torch.multinomial(torch.softmax(logits, -1), 1)[:, 0]
        live[:, at + 1] = live[:, at] & (ids[:, at] != EOS)
    return ids, features, live


class Texts:
    def __init__(self, target):
        rounds = []
        for seed in range(ROUNDS):
            rounds.append(write_texts(target, seed))
            print(f"texts {seed + 1}/{ROUNDS}: {int(rounds[-1][2].sum())} tokens", flush=True)
        self.ids, self.features, self.live = (torch.cat(part) for part in zip(*rounds))

    def windows(self, count, length, generator):
        rows = torch.randint(len(self.ids), (count,), generator=generator)
        starts = torch.randint(TEXT_LENGTH - length + 1, (count,), generator=generator)
        cut = lambda all: torch.stack([all[r, s:s + length] for r, s in zip(rows, starts)])
        return cut(self.ids), cut(self.features).float(), cut(self.live)


class ResBlock(nn.Module):
    """x + silu(linear(x)); with `blocks` > 1 inputs beside each other, which a second linear joins."""

    def __init__(self, hidden, blocks=1):
        super().__init__()
        self.linear = nn.Linear(blocks * hidden, hidden)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.res_connection = nn.Linear(blocks * hidden, hidden) if blocks > 1 else None
        if self.res_connection is not None:  # its initial output is its first input
            nn.init.zeros_(self.res_connection.weight)
            nn.init.zeros_(self.res_connection.bias)
            with torch.no_grad():
                self.res_connection.weight[:, :hidden].copy_(torch.eye(hidden))

    def forward(self, x):
        straight = x if self.res_connection is None else self.res_connection(x)
        return straight + F.silu(self.linear(x))


def soft_loss(logits, wanted, weight):
    """Cross-entropy against the target's own distribution, over the positions that count."""
    loss = -(wanted * F.log_softmax(logits, -1)).sum(-1)
    return (loss * weight).sum() / weight.sum().clamp(min=1)


def fit(name, parameters, steps, rate, loss_of):
    optimiser = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda i: min((i + 1) / warm, max(0.02, (steps - i) / steps)))
    generator = torch.Generator().manual_seed(1)
    start, mean = time.time(), None
    for step in range(steps):
        loss = loss_of(generator)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        schedule.step()
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if (step + 1) % 50 == 0:
            print(f"{name} {step + 1}/{steps}: loss {mean:.3f}, {time.time() - start:.0f} s", flush=True)


def train_heads(name, target, texts, blocks_of):
    """The trained Medusa or Hydra heads. blocks_of(i): how many inputs of head i lie beside each other, which are the
    feature, then the embeddings of the tokens that follow."""
    hidden = target.lm_head().shape[1]
    count = MEDUSA_HEADS if name == "medusa" else HYDRA_HEADS
    torch.manual_seed(2)
    heads = nn.ModuleList([ResBlock(hidden, blocks_of(i)) for i in range(count)])
    table = target.tensors["model.embed_tokens.weight"]

    def loss_of(generator):
        ids, features, live = texts.windows(HEAD_TEXTS, HEAD_WINDOW, generator)
        with torch.no_grad():
            wanted = torch.softmax(F.linear(features, target.lm_head()), -1)
        loss, last = 0, HEAD_WINDOW - 1 - count
        for i, head in enumerate(heads):  # at position p, head i predicts the token at p + 2 + i
            inputs = [features[:, :last]]
            inputs += [F.embedding(ids[:, j:j + last], table) for j in range(1, blocks_of(i))]
            logits = F.linear(head(torch.cat(inputs, -1)), target.lm_head())
            loss = loss + 0.9 ** i * soft_loss(logits, wanted[:, i + 1:i + 1 + last],
                                               live[:, i + 1:i + 1 + last].float())
        return loss / count

    fit(name, list(heads.parameters()), HEAD_STEPS, 1e-3, loss_of)
    return heads


def train_draft_model(target, texts):
    hidden, vocab = DRAFT["hidden"], target.lm_head().shape[0]
    torch.manual_seed(3)
    tensors = {"model.embed_tokens.weight": torch.randn(vocab, hidden) * 0.02,
               "model.norm.weight": torch.ones(hidden)}
    for layer in range(DRAFT["layers"]):
        name = f"model.layers.{layer}."
        shapes = {"self_attn.q_proj": (DRAFT["heads"] * HEAD_DIM, hidden),
                  "self_attn.k_proj": (DRAFT["kv_heads"] * HEAD_DIM, hidden),
                  "self_attn.v_proj": (DRAFT["kv_heads"] * HEAD_DIM, hidden),
                  "self_attn.o_proj": (hidden, DRAFT["heads"] * HEAD_DIM),
                  "mlp.gate_proj": (DRAFT["ffn"], hidden), "mlp.up_proj": (DRAFT["ffn"], hidden),
                  "mlp.down_proj": (hidden, DRAFT["ffn"])}
        for part, shape in shapes.items():
            tensors[f"{name}{part}.weight"] = torch.randn(shape) * shape[1] ** -0.5
        for part in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{name}{part}.weight"] = torch.ones(hidden)
    for tensor in tensors.values():
        tensor.requires_grad_()
    model = Llama(tensors, DRAFT["layers"], DRAFT["heads"], DRAFT["kv_heads"])

    def loss_of(generator):
        ids, features, live = texts.windows(DRAFT_TEXTS, DRAFT_WINDOW, generator)
        with torch.no_grad():
            wanted = torch.softmax(F.linear(features, target.lm_head()), -1)
        return soft_loss(F.linear(model.features(ids), model.lm_head()), wanted, live.float())

    fit("draft", list(tensors.values()), DRAFT_STEPS, 4e-3, loss_of)
    return tensors


def save_heads(folder, name, tensors, config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    torch.save({key: value.detach().half() for key, value in tensors.items()}, folder / name)


def save_draft_model(aerie, model, path, tensors, config):
    """One GGUF file in Q8_0, with the target's tokenizer."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "draft"
        folder.mkdir()
        config = dict(config, hidden_size=DRAFT["hidden"], intermediate_size=DRAFT["ffn"],
                      num_hidden_layers=DRAFT["layers"], num_attention_heads=DRAFT["heads"],
                      num_key_value_heads=DRAFT["kv_heads"], head_dim=HEAD_DIM, tie_word_embeddings=True)
        (folder / "config.json").write_text(json.dumps(config))
        for file in ("tokenizer.model", "tokenizer_config.json", "generation_config.json"):
            shutil.copy(model / file, folder / file)
        write_tensors(folder / "model.safetensors", tensors)
        path.unlink(missing_ok=True)
        subprocess.run([aerie, "convert", folder, "-o", path, "--weights", "q8_0"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("aerie", help="the program, which converts the draft model")
    parser.add_argument("models", type=pathlib.Path, help="folder of aerie-tiny; the heads go there too")
    options = parser.parse_args()
    model = options.models / "aerie-tiny"
    config = json.loads((model / "config.json").read_text())
    target = Llama(read_tensors(model / "model.safetensors"), config["num_hidden_layers"],
                   config["num_attention_heads"], config["num_key_value_heads"])
    with torch.no_grad():
        texts = Texts(target)

    medusa = train_heads("medusa", target, texts, lambda i: 1)
    tensors = {f"{i}.0.linear.{part}": getattr(head.linear, part)
               for i, head in enumerate(medusa) for part in ("weight", "bias")}
    save_heads(options.models / "aerie-tiny-medusa", "medusa_lm_head.pt", tensors,
               {"medusa_num_heads": MEDUSA_HEADS, "medusa_num_layers": 1, "version": "2",
                "base_model_name_or_path": "aerie-tiny"})

    hydra = train_heads("hydra", target, texts, lambda i: i + 2)
    tensors = {f"hydra_mlp.{i}.0.{block}.{part}": getattr(getattr(head, block), part)
               for i, head in enumerate(hydra) for block in ("linear", "res_connection")
               for part in ("weight", "bias")}
    save_heads(options.models / "aerie-tiny-hydra", "hydra_lm_head.pt", tensors,
               {"hydra_num_heads": HYDRA_HEADS, "hydra_num_layers": 1, "hydra_head_arch": "mlp",
                "grounded_heads": True, "base_model_name_or_path": "aerie-tiny"})

    save_draft_model(options.aerie, model, options.models / "aerie-tiny-draft.gguf",
                     train_draft_model(target, texts), config)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
