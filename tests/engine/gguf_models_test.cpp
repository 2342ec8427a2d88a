// Models in GGUF files against transformers on the dequantised weights: ids in f32, and logits with
// the weights as stored, for which activations are rounded to 8 bits. AERIE_TEST_GGUF may name
// another folder of files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/checks.h"
#include "engine/watched_backend.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

fs::path gguf_folder() {
    const char* given = std::getenv("AERIE_TEST_GGUF");
    return given && *given ? fs::path(given) : test_data_dir() / "real" / "gguf";
}

Json golden() {
    const fs::path path = test_data_dir() / "real" / "gguf_greedy.json";
    return Json::parse(read_text(path, 4 << 20), path.string());
}

struct Loaded {
    explicit Loaded(const std::string& file, std::optional<DType> weights, DType kv) {
        LoadOptions options;
        options.device = test_device();
        options.model = gguf_folder() / file;
        options.weights = weights;
        options.kv = kv;
        options.draft = draft_options("none");
        model = std::make_unique<Model>(ModelFiles::open(options), options,
                                        open_device(options.device));
        plain = model->start_session(draft_options("none"));
    }
    std::unique_ptr<Model> model;
    Model::Drafting plain;
};

// The files of the folder that have golden ids.
std::vector<std::pair<std::string, Json>> files() {
    std::vector<std::pair<std::string, Json>> found;
    const Json all = golden();
    for (const auto& [file, prompts] : *all.object())
        if (fs::exists(gguf_folder() / file)) found.emplace_back(file, prompts);
    return found;
}

TEST(GgufModels, GoOnAsTransformersDoesInF32) {
    int texts = 0;
    for (const auto& [file, prompts] : files()) {
        const Loaded loaded(file, DType::F32, DType::F32);
        for (const Json& prompt : *prompts.array()) {
            std::vector<int> want = ints(*prompt.find("ids"));
            want.resize(size_t(prompt.find("safe")->number()));
            EXPECT_EQ(
                decode(*loaded.plain.session, ints(*prompt.find("prompt_ids")), int(want.size())),
                want)
                << file << " text " << texts;
            ++texts;
        }
    }
    EXPECT_GE(texts, 8);
}

TEST(GgufModels, HaveTheirLogitsAsStored) {
    for (const auto& [file, prompts] : files()) {
        const Loaded loaded(file, {}, DType::F32);
        Session& session = *loaded.plain.session;
        double squares = 0, worst = 0;
        int values = 0;
        for (const Json& prompt : *prompts.array()) {
            session.begin({});
            session.prefill(ints(*prompt.find("prompt_ids")));
            Logits logits(size_t(session.logits().cols));
            loaded.model->backend().read(session.logits().row_range(0, 1), logits.data());
            const std::vector<int> ids = ints(*prompt.find("top_ids"));
            for (size_t i = 0; i < ids.size(); ++i, ++values) {
                const double want = prompt.find("top")->array()->at(i).number();
                const double error = std::abs(double(logits[size_t(ids[i])]) - want);
                squares += error * error;
                worst = std::max(worst, error);
            }
        }
        ASSERT_GE(values, 40) << file;
        const double mean = std::sqrt(squares / values);
        std::printf("%s: %s, root mean square %.3f, largest %.3f of %d\n", file.c_str(),
                    to_string(loaded.model->weights()).c_str(), mean, worst, values);
        EXPECT_LE(mean, 0.2) << file;
        EXPECT_LE(worst, 0.6) << file;
    }
}

}  // namespace
}  // namespace aerie::test
