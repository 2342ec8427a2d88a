#!/usr/bin/env python3
"""Measures what PyTorch achieves on the same GPU in the same minute: a copy of 4 GiB, a small kernel of a graph,
matmuls of Llama-2-7B's shapes in f16 with weights rotated over 400 MB, attention of 60 rows. Times are those of CUDA
events, in microseconds.

gpu_yardstick.py OUT.json"""

import json
import sys

try:
    import torch
except ImportError:
    print("SKIPPED: no PyTorch here")
    sys.exit(77)

SHAPES = {"qkv": (12288, 4096), "o": (4096, 4096), "gate_up": (22016, 4096), "down": (4096, 11008), "head": (32000, 4096)}
ROWS = (1, 8, 16, 32, 60, 64)
CONTEXTS = (256, 1024, 2048)
ROTATED_BYTES = 400e6
REPEATS = 9


def microseconds(run, repeats=REPEATS):
    """The median time of run(), after two runs to warm up."""
    spans = []
    for _ in range(repeats + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        spans.append(1000 * begin.elapsed_time(end))
    return sorted(spans[2:])[repeats // 2]


def in_graph(run, count):
    """Microseconds of each of `count` calls of run(i), replayed as a graph, so without launches by the host."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run(0)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            run(i)
    return microseconds(graph.replay) / count


def copy_rate():
    source = torch.ones(1 << 32, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / microseconds(lambda: target.copy_(source)) / 1e3


def matmuls():
    found = {}
    for name, (outputs, inner) in SHAPES.items():
        copies = int(ROTATED_BYTES / (2 * outputs * inner)) + 2
        weights = [torch.randn(outputs, inner, dtype=torch.float16, device="cuda") for _ in range(copies)]
        for rows in ROWS:
            x = torch.randn(rows, inner, dtype=torch.float16, device="cuda")
            found[f"{name} f16 {rows}"] = in_graph(lambda i: torch.nn.functional.linear(x, weights[i % copies]), 48)
    return found


def attention(context):
    q = torch.randn(1, 32, 60, 128, dtype=torch.float16, device="cuda")
    k, v = (torch.randn(1, 32, context, 128, dtype=torch.float16, device="cuda") for _ in range(2))
    seen = torch.rand(60, context, device="cuda") < 0.9
    return in_graph(lambda _: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen), 20)


def main():
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch finds no GPU")
        sys.exit(77)
    number = torch.zeros(32, device="cuda")
    figures = {"schema": "aerie-yardstick-1", "torch": torch.__version__, "device": torch.cuda.get_device_name(),
               "copy_gb_per_s": copy_rate(), "small_kernel_us": in_graph(lambda _: number.add_(1), 200)}
    figures["us"] = matmuls()
    figures["us"].update({f"attention 60 x {context}": attention(context) for context in CONTEXTS})
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(figures, out, indent=1)
    print(json.dumps({key: value for key, value in figures.items() if key != "us"}))
    for name, us in figures["us"].items():
        print(f"{name:20} {us:9.1f} us", file=sys.stderr)


if __name__ == "__main__":
    main()
