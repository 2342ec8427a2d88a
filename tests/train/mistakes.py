#!/usr/bin/env python3
"""Plants mistakes in the training of heads, one at a time, and checks that the tests catch each of them.

usage: mistakes.py SOURCE BUILD [NAME...]

The mistakes are those of tests/data/train/README.md. Each is a change of a line in a copy of a source file, which is compiled as the
build compiles it and linked before the library that has the original.
"""
import os
import re
import subprocess
import sys
import tempfile

BATCH, LAYER = "src/train/batch.cpp", "src/train/decoder_layer.cpp"
EAGLE3, EAGLE2 = "src/train/eagle3_loss.cpp", "src/train/eagle2_loss.cpp"
HEAD, READER, TRAINER = "src/train/trained_head.cpp", "src/train/target_reader.cpp", "src/train/trainer.cpp"
DEVICE = "backends/cpu/training/device.cpp"
ATTENTION = "backends/cpu/training/attention.h"

# name: file, text, the text in its place
MISTAKES = {
    "columns_earlier_depths_unseen": (LAYER, "    for (size_t j = 0; j <= depth; ++j) {", "    for (size_t j = 0; j <= depth; ++j) {\n        if (j > 0 && j < depth) continue;"),
    "columns_own_pass_causal": (LAYER, "    for (size_t j = 0; j <= depth; ++j) {", "    for (size_t j = depth; j <= depth; ++j) {"),
    "columns_native_up_to_position": (LAYER, "        const Matrix& all = passes[j].*qkv;", "        const Matrix& all = passes[j > 0 && j < depth ? 0 : j].*qkv;"),
    "columns_neighbour_row": (LAYER, "        const Matrix& all = passes[j].*qkv;", "        Matrix all = passes[j].*qkv;\n        if (j > 0 && j < depth) all.offset -= all.stride;"),
    "features_one_early": (READER, "device_.write(made.features.row_range(first, count), part(0));", "device_.write(made.features.row_range(first, count), part(1));"),
    "goals_not_advanced": (READER, "device_.write(made.goals.row_range(first, count), part(1));", "device_.write(made.goals.row_range(first, count), part(0));"),
    "target_one_early": (READER, "subspan((i + 1) * size_t(vocab), size_t(vocab))", "subspan(i * size_t(vocab), size_t(vocab))"),
    "not_renormalised": (READER, "    for (float& p : out) p = float(double(p) / sum);", "    sum *= 1.1;\n    for (float& p : out) p = float(double(p) / sum);"),
    "t2d_ignored": (READER, "can_be_said[r] = vocabulary.has[size_t(best)];", "can_be_said[r] = best >= 0;"),
    "rope_not_advanced": (BATCH, "return each_row(*this, [&](const std::vector<int>&, int i) { return i + depth; });", "return each_row(*this, [&](const std::vector<int>&, int i) { return i + 0 * depth; });"),
    "loss_mask_ignored": (BATCH, "i + depth < count && texts.mask[size_t(q)][size_t(i + depth)] &&", "i + depth < count &&"),
    "mask_of_fed_token": (BATCH, "texts.mask[size_t(q)][size_t(i + depth)]", "texts.mask[size_t(q)][size_t(i + depth + 1)]"),
    "token_not_advanced": (BATCH, "return sequence[std::min(size_t(i + 1 + depth), sequence.size() - 1)];", "return sequence[std::min(size_t(i + 1 + 0 * depth), sequence.size() - 1)];"),
    "target_not_advanced": (BATCH, "rows.push_back(counts ? at : -1);", "rows.push_back(counts ? at - depth : -1);"),
    "mean_over_counted": (EAGLE3, "const double weight = std::pow(test_.weight, depth) / texts.all_tokens();", "const double weight = std::pow(test_.weight, depth) / texts.rows();"),
    "weights_missing": (EAGLE3, "const double weight = std::pow(test_.weight, depth) / texts.all_tokens();", "const double weight = 1.0 / texts.all_tokens();"),
    "normed_output_fed_back": (EAGLE3, "device_.add(pass.hidden, passes[size_t(depth) - 1].out);", "device_.add(pass.hidden, normed_.row_range(0, rows));"),
    "detached_between_depths": (EAGLE3, "device_.add(of(scratch_[size_t(depth) - 1].dout), of(dhidden_));", "(void)0;"),
    "halves_swapped": (EAGLE3, "device_.rms_norm(pass.x.col_range(0, shape.hidden), of(own.embedded_inverse)", "device_.rms_norm(pass.x.col_range(shape.hidden, shape.hidden), of(own.embedded_inverse)"),
    "lm_head_frozen": (EAGLE3, "device_.multiply(Product::at_b, head_.lm_head.gradient, logits, x, true);", "(void)0;"),
    "clip_missing": (HEAD, "const double clip = std::min(1.0, clip_norm / (norm + 1e-6));", "const double clip = std::max(1.0, clip_norm / 1e9);"),
    "bias_correction_missing": (DEVICE, "const double first = 1 - std::pow(rule.beta1, step),", "const double first = 1 - std::pow(rule.beta1, 1000 + step),"),
    "beta2_999": (DEVICE, "v[r][i] = Real(rule.beta2 * double(v[r][i]) + (1 - rule.beta2) * d * d);", "v[r][i] = Real(0.999 * double(v[r][i]) + 0.001 * d * d);"),
    "weight_decay_01": (DEVICE, "(1 - rule.rate * rule.decay)", "(1 - rule.rate * 0.01)"),
    "noise_halved": (TRAINER, "n = float(amount * (2 * unit(rng) - 1));", "n = float(amount * (unit(rng) - 0.5));"),
    "eagle2_features_swapped": (EAGLE2, "device_.gather(pairs.col_range(0, hidden), embedding_, texts.next_tokens(0));\n    const Matrix features = pairs.col_range(hidden, hidden);", "device_.gather(pairs.col_range(hidden, hidden), embedding_, texts.next_tokens(0));\n    const Matrix features = pairs.col_range(0, hidden);"),
    "mean_over_all_rows": (EAGLE2, "const double count = judged.count();", "const double count = judged.count() == 0 ? 0 : rows;"),
    "class_weight_one": (EAGLE2, "const double loss = regression_ + kClassWeight * classification_.sum / count;", "const double loss = regression_ + classification_.sum / count;"),
    "bias_not_trained": (EAGLE2, "device_.sum_rows(head_.fc_bias.gradient, of(dhidden_));", "(void)0;"),
    "summed_over_width": (DEVICE, "losses[size_t(r)] = loss / to.cols;", "losses[size_t(r)] = loss;"),
    "mse_instead": (DEVICE, "loss += std::abs(d) < 1 ? double(d) * double(d) / 2 : std::abs(double(d)) - 0.5;", "loss += double(d) * double(d);"),
    "l1_instead": (DEVICE, "loss += std::abs(d) < 1 ? double(d) * double(d) / 2 : std::abs(double(d)) - 0.5;", "loss += std::abs(double(d));"),
    "own_key_unweighted": (ATTENTION, "own_scores(i)[j] = dot(q_[first + i], keys_[j][first + i]) * scale_;", "own_scores(i)[j] = dot(q_[first + i], keys_[j][first + i]);"),
}
# The programs that may catch a mistake, the quickest first.
TESTS = [("train_gradients_test", []), ("train_golden_test", ["--gtest_filter=*FirstStepInDoubles*"]),
         ("train_test", ["--gtest_filter=*Reads*:Noise*"]), ("train_golden_test", [])]


def commands(build, target):
    """The commands with which ninja makes a target, the last one first."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True, capture_output=True, text=True).stdout
    return listed.strip().splitlines()[::-1]


def compile_command(build, source):
    """The command that compiles a source file of the repository."""
    target = f"src/CMakeFiles/aerie_train.dir/{source[4:]}.o" if source.startswith("src/") else (
        f"backends/cpu/CMakeFiles/aerie_cpu_training.dir/{source[len('backends/cpu/'):]}.o")
    return commands(build, target)[0], target


def plant(source, build, file, old, new, folder):
    """Compiles a file with the mistake; returns the object file."""
    with open(os.path.join(source, file), encoding="utf-8") as reader:
        text = reader.read()
    if text.count(old) != 1:
        raise SystemExit(f"mistakes: {file} has {text.count(old)} times: {old}")
    text = text.replace(old, new)
    include = ""
    compiled = file
    if file == ATTENTION:  # a header: the copy is found before the original
        os.makedirs(os.path.join(folder, "cpu/training"), exist_ok=True)
        with open(os.path.join(folder, "cpu/training/attention.h"), "w", encoding="utf-8") as writer:
            writer.write(text)
        include, compiled = f"-I{folder} ", DEVICE
    command, target = compile_command(build, compiled)
    made = os.path.join(folder, "planted.o")
    copy = os.path.join(source, compiled)
    if file != ATTENTION:
        copy = os.path.join(folder, os.path.basename(file))
        with open(copy, "w", encoding="utf-8") as writer:
            writer.write(text)
    command = re.sub(r"-o \S+ -c \S+$", f"-o {made} -c {copy}", command).replace("-Werror", "")
    command = re.sub(r"-MF \S+", f"-MF {made}.d", command)
    command = command.replace(" -I", f" {include}-I", 1)
    subprocess.run(command, shell=True, check=True, cwd=build)
    return made


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    names = sys.argv[3:] or list(MISTAKES)
    missed = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            made = plant(source, build, *MISTAKES[name], folder)
            caught = None
            for program, arguments in TESTS:
                linked = os.path.join(folder, program)
                if not os.path.exists(linked):
                    link = commands(build, program)[0]
                    link = re.sub(r"-o (\S+)", f"-o {linked} {made}", link, count=1)
                    subprocess.run(link, shell=True, check=True, cwd=build, stdout=subprocess.DEVNULL)
                result = subprocess.run([linked, *arguments], cwd=build, capture_output=True, text=True)
                if result.returncode != 0:
                    failed = re.findall(r"\[  FAILED  \] (\S+)", result.stdout)
                    caught = failed[0].rstrip(",") if failed else f"{program}: exit code {result.returncode}"
                    break
        print(f"{name}: {caught or 'NOT CAUGHT'}", flush=True)
        if not caught:
            missed.append(name)
    print(f"{len(names)} mistakes, {len(names) - len(missed)} caught")
    sys.exit(1 if missed or not names else 0)


if __name__ == "__main__":
    main()
