// The subcommands. Each returns the exit code: 0 ok, 1 failure, 2 usage, or 128 + the signal that
// ended it.
#pragma once

#include "engine/model_files.h"
#include "engine/sampling.h"
#include "options.h"

namespace aerie {

int run_generate(const GenerateOptions& options);
int run_generate_many(const GenerateOptions& options);  // with --prompts
int run_chat(const ChatOptions& options);
int run_tokenize(const TokenizeOptions& options);
int run_render(const RenderOptions& options);
int run_info(const InfoOptions& options);
int run_devices(const ListingOptions& options);
int run_models(const ModelsOptions& options);
int run_cache(const CacheOptions& options);
int run_perplexity(const PerplexityOptions& options);
int run_synth(const SynthOptions& options);
int run_convert(const ConvertOptions& options);
int run_bench(const BenchOptions& options);
int run_compare(const CompareOptions& options);
int run_serve(const ServeOptions& options);
int run_train(const TrainOptions& options);
int run_forget(const ForgetOptions& options);
int run_pull(const PullCommandOptions& options);

// Each value by its flag, else as model_sampling() says. Throws UsageError.
Sampling sampling_of(const SamplingOptions& options, const GenerationConfig& model);

// Finds the folders of target and head, and decides how to draft. A flag takes precedence over its
// variable (AERIE_MODEL, AERIE_HEAD, AERIE_DEVICE, AERIE_THREADS), and that over the default.
// Throws Error or UsageError.
LoadOptions locate(const ModelOptions& options);
// The same for a model that needs no folder: drafting is as with a head unless asked otherwise.
LoadOptions locate_nothing(const ModelOptions& options);

// Folders in which models are looked for first: that of AERIE_MODELS.
std::vector<std::filesystem::path> model_folders();

// The folder or file of a model with this name, that of AERIE_MODEL, or the default's. Throws
// Error.
std::filesystem::path locate_model(const std::optional<std::string>& name);

// The recorded acceptance that `aerie bench` replays. Throws Error.
std::filesystem::path find_acceptance();

}  // namespace aerie
