// Heads of other kinds than lossless_test's change no text either: EAGLE-3, parts of a vocabulary,
// random heads, and heads that are always wrong or always right.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "engine/checks.h"
#include "io/damage.h"
#include "model/make/random_weights.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

const std::filesystem::path kEagle3 = models_dir() / "aerie-tiny-eagle3";

int prompt_count() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min(count ? std::atoi(count) : 2, 40);
}

DraftOptions chosen(const std::string& method) {
    DraftOptions options = draft_options(method);
    options.tree.reset();
    return options;
}

// Candidates that the head drafts: its own, wrong ones, or the right ones.
enum class Says { own, wrong, right };

class HeadTexts : public testing::TestWithParam<std::tuple<DType, float>> {
  protected:
    using Texts = std::vector<std::vector<int>>;

    LoadOptions options(const std::filesystem::path& head, HeadOptions choices = {}) const {
        LoadOptions options = bundled_options(std::get<0>(GetParam()));
        options.head = head;
        options.head_options = std::move(choices);
        options.draft.method = "chain";  // a method that any kind of head has
        return options;
    }

    Request request(Bundled& model, size_t i) const {
        Request request = model.request(model.encode(sixty_prompts()[i]), most_tokens(64),
                                        sampling_at(std::get<1>(GetParam()), 1000 + i));
        request.eos_ids.clear();
        return request;
    }

    Texts plain(Bundled& model) const {
        const auto drafting = model.drafting(draft_options("none"));
        Texts texts;
        for (int i = 0; i < prompt_count(); ++i)
            texts.push_back(model.run(*drafting.session, request(model, size_t(i))).ids);
        return texts;
    }

    // Expects the texts of plain decoding; returns tau.
    double expect_plain(const std::string& what, Bundled& model, DraftOptions draft,
                        const Texts& want, Says says = Says::own) const {
        Session* session = nullptr;
        std::vector<int> truth;  // the whole text
        if (says == Says::wrong)
            draft.on_level = [](const DraftState&, std::span<Candidate> table, int first,
                                int last) {
                for (int i = first; i < last; ++i) table[size_t(i)].token = 7 + i % 10;
            };
        if (says == Says::right)
            draft.on_level = [&](const DraftState&, std::span<Candidate> table, int first, int) {
                // The first child of the first node of each level becomes the true token.
                size_t at = session->sequence().tokens().size();
                for (int entry = first; (entry = table[size_t(entry)].parent) >= 0;) ++at;
                Candidate& one = table[size_t(first)];
                if (at < truth.size()) one.token = truth[at];
                one.log_prob = 0;
                one.value = one.parent < 0 ? 0 : table[size_t(one.parent)].value;
            };
        const auto drafting = model.drafting(draft);
        session = drafting.session.get();
        double tokens = 0, cycles = 0;
        int different = 0;
        for (size_t i = 0; i < want.size(); ++i) {
            const Request one = request(model, i);
            truth = one.prompt;
            truth.insert(truth.end(), want[i].begin(), want[i].end());
            const GenerationResult got = model.run(*drafting.session, one);
            different += got.ids != want[i];
            tokens += got.stats.cycle_tokens;
            cycles += got.stats.cycles;
        }
        EXPECT_EQ(different, 0) << what;
        std::printf("%s at %.1f, %s: %zu texts, %d differ, tau %.3f\n",
                    name(std::get<0>(GetParam())), double(std::get<1>(GetParam())), what.c_str(),
                    want.size(), different, tokens / cycles);
        return tokens / cycles;
    }
};

TEST_P(HeadTexts, OfEagle3) {
    Bundled model(options(kEagle3));
    const Texts want = plain(model);
    for (const char* method : {"eagle3", "chain", "eagle1"})
        expect_plain(method, model, draft_options(method), want);
    expect_plain("eagle3, auto", model, chosen("eagle3"), want);
    const DraftOptions tree = draft_options("eagle3");
    EXPECT_LT(expect_plain("eagle3, always wrong", model, tree, want, Says::wrong), 1.2);
    const double tau = expect_plain("eagle3, always right", model, tree, want, Says::right);
    const int drafted = most_tokens(64) - 1, of_a_cycle = tree.tree->levels + 1;
    EXPECT_NEAR(tau * std::ceil(double(drafted) / of_a_cycle), drafted, 1e-6);
}

TEST_P(HeadTexts, OfARandomEagle3Head) {
    const TestFolder folder;
    const RandomWeights weights(DType::F32, 5);
    std::vector<Stored> tensors = Stored::all_of(kEagle3);
    for (Stored& tensor : tensors)
        if (tensor.name.find('.') != tensor.name.npos) {
            tensor = tensor.as(DType::F32);
            weights.fill(tensor.name, 0, std::as_writable_bytes(std::span(tensor.data)));
        }
    folder.write("config.json", read_text(kEagle3 / "config.json", 1 << 16));
    folder.write("model.safetensors", safetensors_of(tensors));
    Bundled model(options(folder.path()));
    expect_plain("eagle3, random", model, draft_options("eagle3"), plain(model));
}

TEST_P(HeadTexts, OfAPartOfTheVocabulary) {
    Texts want;
    for (const int vocab : {2048, 200}) {
        Bundled model(options(models_dir() / "aerie-tiny-eagle", {.vocab = vocab}));
        if (want.empty()) want = plain(model);
        const std::string words = ", " + std::to_string(vocab) + " tokens";
        for (const char* method : {"eagle2", "eagle1", "chain"})
            expect_plain(method + words, model, draft_options(method), want);
        expect_plain("eagle2, auto" + words, model, chosen("eagle2"), want);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, HeadTexts,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(0.0f, 0.8f)),
                         [](const auto& info) {
                             return std::string(name(std::get<0>(info.param))) +
                                    (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
                         });

}  // namespace
}  // namespace aerie::test
