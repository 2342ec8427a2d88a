// `aerie convert`: writes any model that aerie reads as one GGUF file, complete or not at all.
#include "commands.h"
#include "core/error.h"
#include "model/make/gguf_export.h"
#include "place.h"
#include "terminal.h"
#include "text/gguf_tokenizer_writer.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

std::vector<std::string> add_tokenizer(const ModelFiles& files, GgufMetadata& metadata) {
    if (!files.target.tokenizer) return {"the model has no tokenizer, and neither has the file"};
    const Tokenizer tokenizer = load_tokenizer(files);
    return describe_tokenizer(*files.target.tokenizer, tokenizer, files.config.vocab,
                              eos_ids(files, tokenizer), metadata);
}

}  // namespace

int run_convert(const ConvertOptions& options) {
    const fs::path place = options.output;
    if (place.extension() != ".gguf") throw UsageError("--output must end in .gguf");
    LoadOptions wanted;
    wanted.model = locate_model(options.model);
    wanted.draft.method = "none";
    const ModelFiles files = ModelFiles::open(wanted);
    GgufExport made(files.target, options.weights);
    std::vector<std::string> warnings = add_tokenizer(files, made.metadata());
    warnings.insert(warnings.end(), made.warnings().begin(), made.warnings().end());
    check_place({place}, made.data_bytes());

    end_cleanly_on_signals();
    ProgressLine progress(options.quiet);
    GgufRows rows = made.rows();
    rows.on_written = [&, done = size_t(0)](size_t bytes) mutable {
        if (interrupted()) throw Interrupted();
        done += bytes;
        progress.show("writing " + place.string() + ": " + std::to_string(done >> 20) + " of " +
                      std::to_string(made.data_bytes() >> 20) + " MiB");
    };
    PendingFile file(place, PendingFile::Kind::file);
    try {
        write_gguf(file, made.metadata(), made.tensors(), rows);
    } catch (const Interrupted&) {
        return interrupted();
    }
    file.finish();
    progress.clear();
    for (const std::string& line : warnings) tell("warning: " + line + "\n");
    if (!options.quiet)
        print(place.string() + ": " + std::to_string(made.tensors().size()) + " tensors, " +
              std::to_string(made.data_bytes() >> 20) + " MiB\n");
    return 0;
}

}  // namespace aerie
