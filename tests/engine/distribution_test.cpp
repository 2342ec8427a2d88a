// The first three tokens, drafted by each drafter on a toy model, against the true distribution by
// enumeration. G-tests of the joint, of neighbouring pairs and of each token alone: a bias of one
// token drowns in the joint's 1,728 cells and stands out in twelve. $AERIE_TEST_RUNS is the number
// of texts: the 400,000 of the long suite see a bias of 2 %, the 20,000 of the short one a bias of
// 8 %; PowerOfTheTest plants both.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "backend/registry.h"
#include "engine/g_test.h"
#include "engine/model.h"
#include "model/toy_model.h"
#include "reference/choices.h"

namespace aerie::test {
namespace {

constexpr int kVocab = 12;
const std::vector<int> kPrompt = {1, 7, 3};

int run_count() {
    const char* runs = std::getenv("AERIE_TEST_RUNS");
    return runs ? std::atoi(runs) : 20000;
}

class Toy {
  public:
    Toy()
        : folder_(std::filesystem::temp_directory_path() /
                  ("aerie-toy-" + std::to_string(::getpid()))) {
        config_.hidden = 32;
        config_.intermediate = 48;
        config_.layers = 2;
        config_.vocab = kVocab;
        config_.context = 64;
        config_.attention = {2, 1, 16};
        write_toy_model(folder_, config_, DType::F32, 0.35f, 9);
        head_folder_ = folder_.string() + "-eagle";
        LoadOptions options;
        options.device = "cpu";
        options.threads = 1;
        options.model = folder_;
        options.head = head_folder_;
        options.draft.method = "eagle2";
        options.draft_weights = DType::F32;
        options.kv = limits_.kv;
        options.context = limits_.context;
        options.prefill_rows = limits_.prefill_rows;
        model_ = std::make_unique<Model>(ModelFiles::open(options), options);
    }
    ~Toy() {
        std::filesystem::remove_all(folder_);
        std::filesystem::remove_all(head_folder_);
    }

    Model::Drafting drafting(const std::string& method, AcceptRule accept) {
        DraftOptions options;
        options.method = method;
        options.accept = accept;
        options.chain_length = 2;
        if (accept == AcceptRule::keyed) options.tree = {7, 3, 3};
        options.static_tree = {{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}};
        return model_->start_session(options);
    }

    std::vector<int> generate(Session& session, const Sampling& sampling, double& cycles) {
        session.begin(sampling);
        std::vector<int> ids = {session.prefill(kPrompt).tokens.front()};
        while (ids.size() < 3) {
            const TokenTree tree = session.propose();
            const ChosenTokens chosen = session.commit(tree, accept(tree, session.verify(tree)));
            ids.insert(ids.end(), chosen.tokens.begin(), chosen.tokens.end());
            ++cycles;
        }
        ids.resize(3);
        return ids;
    }

    // Probabilities of the next token after `text`, in double precision from the target's logits.
    std::vector<double> truth(const std::vector<int>& text, const Sampling& sampling) {
        const Model::Drafting none = model_->start_session(make_none());
        Session& session = *none.session;
        session.begin({});
        session.prefill(text);
        std::vector<float> logits(kVocab);
        model_->backend().read(session.logits().row_range(0, 1), logits.data());
        std::vector<reference::Seen> seen(kVocab);
        for (size_t i = 0; i < text.size(); ++i)
            if (i < kPrompt.size())
                seen[size_t(text[i])].in_prompt = true;
            else
                ++seen[size_t(text[i])].put_out;
        return reference::probs(reference::edited_logits(logits, sampling.penalties, seen, {}),
                                sampling.filters);
    }

  private:
    std::filesystem::path folder_, head_folder_;
    ModelConfig config_;
    BatchLimits limits_{64, DType::F32, 64};
    std::unique_ptr<Model> model_;
};

int cell(int a, int b, int c) {
    return (a * kVocab + b) * kVocab + c;
}

// A marginal of the joint: the distribution of the tokens [first, first + count) of a text.
struct View {
    const char* name;
    int first, count;

    template <class Number>
    std::vector<Number> of(const std::vector<Number>& joint) const {
        const size_t below = size_t(std::pow(kVocab, 3 - first - count));
        std::vector<Number> cells(size_t(std::pow(kVocab, count)));
        for (size_t i = 0; i < joint.size(); ++i) cells[i / below % cells.size()] += joint[i];
        return cells;
    }
};
constexpr View kViews[] = {{"first token", 0, 1}, {"second", 1, 1},      {"third", 2, 1},
                           {"first pair", 0, 2},  {"second pair", 1, 2}, {"joint", 0, 3}};

// The least p-value that is no finding. Seeds are fixed, so a build that passes goes on passing.
constexpr double kMinP = 1e-5;

// Names of the views that give a finding; empty if there is none.
std::string biased_views(const std::vector<int>& counts, const std::vector<double>& truth,
                         int runs) {
    std::string found;
    for (const View& view : kViews) {
        const double p = g_test(view.of(counts), view.of(truth), runs);
        if (!(p >= kMinP)) found += std::string(view.name) + " (p = " + std::to_string(p) + ") ";
    }
    return found;
}

std::vector<double> joint(Toy& toy, const Sampling& sampling) {
    std::vector<double> result(kVocab * kVocab * kVocab);
    const std::vector<double> first = toy.truth(kPrompt, sampling);
    for (int a = 0; a < kVocab; ++a) {
        std::vector<int> text = kPrompt;
        text.push_back(a);
        const std::vector<double> second = toy.truth(text, sampling);
        text.push_back(0);
        for (int b = 0; b < kVocab; ++b) {
            text.back() = b;
            const std::vector<double> third = toy.truth(text, sampling);
            for (int c = 0; c < kVocab; ++c)
                result[size_t(cell(a, b, c))] =
                    first[size_t(a)] * second[size_t(b)] * third[size_t(c)];
        }
    }
    return result;
}

const Sampling kSamplings[] = {{{1, 0, 1, 0}, {}, 0},
                               {{0.7f, 6, 0.9f, 0.02f}, {}, 0},
                               {{3, 8, 1, 0.02f}, {1.3f, 0.4f, 0.2f}, 0}};

struct Drafted {
    const char* method;
    AcceptRule accept = AcceptRule::keyed;
};
constexpr Drafted kDrafted[] = {{"none"},
                                {"lookup"},
                                {"chain"},
                                {"eagle1"},
                                {"eagle2"},
                                {"chain", AcceptRule::ratio},
                                {"eagle1", AcceptRule::ratio}};

TEST(Distribution, JointOfThreeTokensByEveryDrafter) {
    Toy toy;
    const int runs = run_count();
    for (Sampling sampling : kSamplings) {
        const std::vector<double> truth = joint(toy, sampling);
        EXPECT_NEAR(std::accumulate(truth.begin(), truth.end(), 0.0), 1, 1e-6);
        for (const Drafted& drafted : kDrafted) {
            const auto drafting = toy.drafting(drafted.method, drafted.accept);
            Session& session = *drafting.session;
            std::vector<int> counts(truth.size());
            double cycles = 0;
            for (int run = 0; run < runs; ++run) {
                sampling.seed = uint64_t(run);
                const std::vector<int> ids = toy.generate(session, sampling, cycles);
                ++counts[size_t(cell(ids[0], ids[1], ids[2]))];
            }
            std::printf("T %.1f, drafter %s%s: %d runs, %.2f cycles each, p of the joint = %.3g\n",
                        double(sampling.filters.temperature), drafted.method,
                        drafted.accept == AcceptRule::ratio ? " with p/q" : "", runs, cycles / runs,
                        g_test(counts, truth, runs));
            EXPECT_EQ(biased_views(counts, truth, runs), "");
        }
    }
}

// Draws from the truth, but every second token at `position` is likelier by `bias`, and the others
// are less likely by the same total.
std::vector<int> draw_biased(const std::vector<double>& truth, int position, double bias, int runs,
                             std::mt19937_64& random) {
    const std::vector<double> tokens = View{"", position, 1}.of(truth);
    double odd = 0, even = 0;
    for (size_t i = 0; i < tokens.size(); ++i) (i % 2 ? odd : even) += tokens[i];
    const size_t below = size_t(std::pow(kVocab, 2 - position));
    std::vector<double> biased = truth;
    for (size_t i = 0; i < truth.size(); ++i)
        biased[i] *= i / below % kVocab % 2 ? 1 + bias : 1 - bias * odd / even;
    std::discrete_distribution<int> draw(biased.begin(), biased.end());
    std::vector<int> counts(truth.size());
    for (int run = 0; run < runs; ++run) ++counts[size_t(draw(random))];
    return counts;
}

// The test must be able to fail, and must not fail without a reason: draws from the truth itself
// give no finding, draws with a small bias always give one.
TEST(Distribution, PowerOfTheTest) {
    Toy toy;
    std::mt19937_64 random(3);
    for (const Sampling& sampling : kSamplings) {
        const std::vector<double> truth = joint(toy, sampling);
        for (const auto& [runs, bias] : {std::pair(400000, 0.02), {20000, 0.08}})
            for (int draw = 0; draw < 6; ++draw) {
                EXPECT_EQ(biased_views(draw_biased(truth, 0, 0, runs, random), truth, runs), "");
                EXPECT_NE(
                    biased_views(draw_biased(truth, draw % 3, bias, runs, random), truth, runs), "")
                    << bias << " of " << runs << " runs at token " << draw % 3;
            }
    }
}

}  // namespace
}  // namespace aerie::test
