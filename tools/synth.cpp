// `aerie synth`: a model of random weights and its head as folders, complete or not at all.
#include <system_error>

#include "commands.h"
#include "core/error.h"
#include "core/partial.h"
#include "io/safetensors_writer.h"
#include "model/synthetic.h"
#include "place.h"
#include "terminal.h"
#include "text/tokenizer.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

constexpr size_t kShardBytes = size_t(4) << 30;
constexpr const char* kTokenizerFiles[] = {"tokenizer.model", "tokenizer_config.json"};

struct Interrupted {};

std::vector<NamedTensor> described(const std::vector<TensorShape>& shapes, DType type) {
    std::vector<NamedTensor> tensors;
    for (const TensorShape& shape : shapes) tensors.push_back({shape.name, type, shape.shape, {}});
    return tensors;
}

// The bundled tokenizer serves any vocabulary that it fits into; further ids have no text.
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

    void write(const fs::path& folder, const ModelConfig& config,
               const std::vector<NamedTensor>& tensors) {
        size_t done = 0;
        const size_t all = data_bytes(tensors);
        write_text(folder / "config.json", config_json(config).dump() + "\n");
        write_safetensors(folder, tensors, kShardBytes,
                          [&](const NamedTensor& tensor, size_t offset, std::span<std::byte> out) {
                              if (interrupted()) throw Interrupted();
                              weights_.fill(tensor.name, int64_t(offset / size_bytes(tensor.dtype)),
                                            out);
                              done += out.size();
                              progress_.show("writing " + folder.stem().string() + ": " +
                                             std::to_string(done >> 20) + " of " +
                                             std::to_string(all >> 20) + " MiB");
                          });
    }

  private:
    RandomWeights weights_;
    ProgressLine& progress_;
};

}  // namespace

int run_synth(const SynthOptions& options) {
    const ModelConfig config = model_shape(options.like, options.changes);
    const auto target_parts = described(target_tensors(config), options.weights);
    const auto head_parts = described(head_tensors(head_shape(config)), options.weights);
    const std::string given = fs::path(options.folder).lexically_normal().string();
    const fs::path folder = given.substr(0, given.find_last_not_of('/') + 1);
    if (folder.empty()) throw UsageError("--output is empty");
    check_place({folder, folder.string() + "-eagle"},
                data_bytes(target_parts) + data_bytes(head_parts));

    end_cleanly_on_signals();
    ProgressLine progress(options.quiet);
    Writer writer(options, progress);
    std::error_code ignored;  // where there is no parent, the folder says so
    fs::create_directories(fs::absolute(folder).parent_path(), ignored);
    Partial target(folder, Partial::Kind::folder);
    Partial head(folder.string() + "-eagle", Partial::Kind::folder);
    bool speaks = false;
    try {
        writer.write(head.path(), head_shape(config), head_parts);
        writer.write(target.path(), config, target_parts);
        write_text(target.path() / "generation_config.json",
                   "{\"bos_token_id\": 1, \"eos_token_id\": 2}\n");
        speaks = copy_tokenizer(target.path(), config.vocab);
    } catch (const Interrupted&) {
        return interrupted();
    }
    head.finish();
    target.finish();
    progress.clear();
    if (!options.quiet)
        print(folder.string() + " and " + folder.string() + "-eagle: " + options.like + ", " +
              std::to_string((data_bytes(target_parts) + data_bytes(head_parts)) >> 20) + " MiB " +
              name(options.weights) +
              (speaks ? "\n"
                      : "; no tokenizer: the bundled one has more pieces than this vocabulary\n"));
    return 0;
}

}  // namespace aerie
