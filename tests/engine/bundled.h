// The bundled model for tests: one target, any number of drafters and sessions over it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "core/error.h"
#include "draft/methods.h"
#include "engine/generation.h"
#include "engine/model.h"
#include "io/input_file.h"
#include "io/json.h"
#include "paths.h"
#include "vulkan_name.h"

namespace aerie::test {

// $AERIE_TEST_DEVICE, else the CPU. "vulkan:0" is the Vulkan device of the tests.
inline std::string test_device() {
    const char* device = std::getenv("AERIE_TEST_DEVICE");
    if (!device) return "cpu";
    return std::string(device) == "vulkan:0" ? vulkan_name() : device;
}

// Tokens of each text: $AERIE_TEST_TOKENS if it is set (slow devices take few), else `otherwise`.
inline int most_tokens(int otherwise) {
    const char* count = std::getenv("AERIE_TEST_TOKENS");
    return count ? std::atoi(count) : otherwise;
}

// Why the device of the tests is missing; empty if it is there. A device that is listed as usable
// counts as there: if it cannot be opened, that is an error.
inline std::string missing_test_device() {
    if (test_device() == "cpu") return {};
    for (const Capabilities& device : list_devices())
        if (device.name == test_device()) return device.problem;
    try {
        open_device(test_device());
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

// Skips all tests of the program where its device is missing.
class NeedsTestDevice : public testing::Environment {
  public:
    void SetUp() override {
        const std::string missing = missing_test_device();
        if (!missing.empty()) GTEST_SKIP() << "SKIPPED: " << missing;
    }
};
inline testing::Environment* const needs_test_device =
    testing::AddGlobalTestEnvironment(new NeedsTestDevice);

// Skips the test if the device does not store `type`. To be called in SetUp.
inline void skip_unless_stored(DType type) {
    if (!open_device(test_device())->stores(type))
        GTEST_SKIP() << "SKIPPED: " << test_device() << " does not store " << name(type);
}

inline LoadOptions bundled_options(DType type, DType draft_type) {
    LoadOptions options;
    options.device = test_device();
    options.model = models_dir() / "aerie-tiny";
    options.head = models_dir() / "aerie-tiny-eagle";
    options.weights = type;
    options.draft_weights = draft_type;
    options.kv = type == DType::F32 ? DType::F32 : DType::F16;
    options.draft.method = "eagle2";
    return options;
}

// The methods that draft with the bundled EAGLE head alone, or without any.
inline std::vector<std::string> bundled_methods() {
    std::vector<std::string> names;
    for (const DraftMethod& method : draft_methods()) {
        const auto takes = [&](const std::string& ending) { return ending == "-eagle"; };
        const bool takes_eagle = method.needs == DraftNeeds::head &&
                                 (method.beside.empty() ||
                                  std::any_of(method.beside.begin(), method.beside.end(), takes));
        if (method.name != kNoDrafts && (method.needs == DraftNeeds::nothing || takes_eagle))
            names.push_back(method.name);
    }
    return names;
}

inline LoadOptions bundled_options(DType type = DType::F32) {
    return bundled_options(type, type);
}

// A model with its tokenizer, and sessions with any drafter that a test wants.
class Bundled {
  public:
    explicit Bundled(const LoadOptions& options = bundled_options())
        : Bundled(options, open_device(options.device, {options.threads})) {}
    Bundled(const LoadOptions& options, std::unique_ptr<Backend> backend)
        : Bundled(ModelFiles::open(options), options, std::move(backend)) {}
    Bundled(ModelFiles files, const LoadOptions& options, std::unique_ptr<Backend> backend)
        : tokenizer_(load_tokenizer(files)),
          model_(std::move(files), options, std::move(backend)) {}

    using Drafting = Model::Drafting;
    Drafting drafting(const DraftOptions& draft) { return model_.start_session(draft); }
    Drafting drafting(const DraftOptions& draft, const BatchLimits& limits) {
        return model_.start_session(draft, limits);
    }

    BatchLimits limits() const { return model_.limits(); }
    Model& model() { return model_; }
    Backend& backend() { return model_.backend(); }
    Target& target() { return model_.target(); }
    const Tokenizer& tokenizer() const { return tokenizer_; }

    std::vector<int> encode(const std::string& prompt) const {
        std::vector<int> ids = tokenizer_.encode(prompt);
        ids.insert(ids.begin(), tokenizer_.bos());
        return ids;
    }

    Request request(std::vector<int> prompt, int max_tokens, Sampling sampling = {}) const {
        Request request;
        request.prompt = std::move(prompt);
        request.max_tokens = max_tokens;
        request.answer.sampling = sampling;
        request.eos_ids = {tokenizer_.eos()};
        return request;
    }

    GenerationResult run(Session& session, const Request& request) {
        return generate(session, tokenizer_, request);
    }

  private:
    Tokenizer tokenizer_;
    Model model_;
};

// The trees of the papers.
inline DraftOptions draft_options(const std::string& method) {
    DraftOptions options;
    options.method = method;
    if (draft_method(method).takes_tree)
        options.tree = TreeShape{};
    else
        options.is_published = true;
    return options;
}

// Acceptance by p / q.
inline DraftOptions drawn_options(const std::string& method) {
    DraftOptions options;
    options.method = method;
    options.accept = AcceptRule::ratio;
    return options;
}

// eagle2 with trees chosen by measurement; nothing is measured beforehand.
inline DraftOptions auto_options() {
    DraftOptions options;
    options.method = "eagle2";
    return options;
}

inline Sampling sampling_at(float temperature, uint64_t seed) {
    Sampling sampling;
    sampling.filters.temperature = temperature;
    sampling.seed = seed;
    return sampling;
}

inline Json read_data(const std::string& file) {
    const auto path = test_data_dir() / file;
    return Json::parse(read_text(path, 64 << 20), path.string());
}

inline std::vector<int> ints(const Json& array) {
    std::vector<int> values;
    for (const Json& item : *array.array()) values.push_back(int(item.number()));
    return values;
}

// The 40 golden prompts, then 20 of our own, one per line of prompts.txt ("\n" written as \n).
inline std::vector<std::string> sixty_prompts() {
    std::vector<std::string> prompts;
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array()) prompts.push_back(*entry.find("prompt")->string());
    std::ifstream file(test_data_dir() / "prompts.txt");
    for (std::string line; std::getline(file, line);) {
        for (size_t at; (at = line.find("\\n")) != std::string::npos;) line.replace(at, 2, "\n");
        if (!line.empty()) prompts.push_back(line);
    }
    return prompts;
}

}  // namespace aerie::test
