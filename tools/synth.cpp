// `aerie synth`: writes a model with random weights and its head as folders, complete or not at
// all.
#include <system_error>

#include "commands.h"
#include "core/error.h"
#include "core/pending_file.h"
#include "draft/heads/random_head.h"
#include "io/safetensors_writer.h"
#include "model/make/random_weights.h"
#include "place.h"
#include "terminal.h"
#include "text/tokenizer.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

constexpr size_t kShardBytes = size_t(4) << 30;
constexpr const char* kTokenizerFiles[] = {"tokenizer.model", "tokenizer_config.json"};

std::vector<NamedTensor> described(const std::vector<TensorShape>& shapes, DType type) {
    std::vector<NamedTensor> tensors;
    for (const TensorShape& shape : shapes) tensors.push_back(aerie::described(shape, type));
    return tensors;
}

// A model, or its head.
struct Part {
    std::string folder;
    Json config;  // config.json
    std::vector<NamedTensor> tensors;
    std::optional<HeadConfig> head;  // absent for a model
};

Part head_of(const std::string& folder, const ModelConfig& target, const SynthOptions& options) {
    const DraftHead& kind = *options.head;
    HeadConfig head = random_head_config(kind, target);
    return {folder + kind.ending, kind.random.config_json(head),
            kind.random.tensors(head, options.weights), std::move(head)};
}

// The bundled tokenizer works for every vocabulary that it fits into; further ids have no text.
bool copy_tokenizer(const fs::path& to, int vocab) {
    ModelOptions bundled;
    bundled.model = "aerie-tiny";
    bundled.draft = "none";
    const fs::path from = locate(bundled).model;
    if (Tokenizer::load(from).size() > vocab) return false;
    for (const char* file : kTokenizerFiles) fs::copy_file(from / file, to / file);
    return true;
}

class Writer {
  public:
    Writer(const SynthOptions& options, ProgressLine& progress)
        : weights_(options.weights, options.seed), progress_(progress) {}

    void write(const fs::path& folder, const Part& part) {
        size_t done = 0;
        const size_t all = data_bytes(part.tensors);
        write_text(folder / "config.json", part.config.dump() + "\n");
        write_safetensors(
            folder, part.tensors, kShardBytes,
            [&](const NamedTensor& tensor, size_t offset, std::span<std::byte> out) {
                if (interrupted()) throw Interrupted();
                const auto first = int64_t(offset / size_bytes(tensor.dtype));
                if (!part.head || !fill_without_weights(*part.head, tensor, first, out))
                    weights_.fill(tensor.name, first, out);
                done += out.size();
                progress_.show("writing " + folder.stem().string() + ": " +
                               std::to_string(done >> 20) + " of " + std::to_string(all >> 20) +
                               " MiB");
            });
    }

  private:
    RandomWeights weights_;
    ProgressLine& progress_;
};

}  // namespace

int run_synth(const SynthOptions& options) {
    const ModelConfig config = model_shape(options.like, options.changes);
    const std::string given = fs::path(options.folder).lexically_normal().string();
    const Part target{given.substr(0, given.find_last_not_of('/') + 1), config_json(config),
                      described(target_tensors(config), options.weights), std::nullopt};
    if (target.folder.empty()) throw UsageError("--output is empty");
    const Part head = head_of(target.folder, config, options);
    const size_t bytes = data_bytes(target.tensors) + data_bytes(head.tensors);
    check_place({target.folder, head.folder}, bytes);

    end_cleanly_on_signals();
    ProgressLine progress(options.quiet);
    Writer writer(options, progress);
    std::error_code ignored;  // if this fails, creating the folder reports it
    fs::create_directories(fs::absolute(target.folder).parent_path(), ignored);
    PendingFile made(target.folder, PendingFile::Kind::folder);
    PendingFile made_head(head.folder, PendingFile::Kind::folder);
    bool speaks = false;
    try {
        writer.write(made_head.path(), head);
        writer.write(made.path(), target);
        write_text(made.path() / "generation_config.json",
                   "{\"bos_token_id\": 1, \"eos_token_id\": 2}\n");
        speaks = copy_tokenizer(made.path(), config.vocab);
    } catch (const Interrupted&) {
        return interrupted();
    }
    made_head.finish();
    made.finish();
    progress.clear();
    if (!options.quiet)
        print(target.folder + " and " + head.folder + ": " + options.like + ", " +
              std::to_string(bytes >> 20) + " MiB " + name(options.weights) +
              (speaks ? "\n"
                      : "; no tokenizer: the bundled one has more pieces than this vocabulary\n"));
    return 0;
}

}  // namespace aerie
