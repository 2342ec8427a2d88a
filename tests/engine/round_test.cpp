// An answer never depends on what else runs: rounds of answers that begin, end and are cancelled at
// random give each the ids and log-probabilities that it has alone.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "engine/bundled_heads.h"

namespace aerie::test {
namespace {

int prompt_count() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return count ? std::atoi(count) : 6;
}

struct Case {
    std::string method;
    std::vector<std::string> heads;
    DType type;
    float temperature;
};

const std::vector<std::pair<std::string, std::vector<std::string>>> kMethods = {
    {"none", {}},          {"chain", {"eagle"}},         {"eagle1", {"eagle"}},
    {"eagle2", {"eagle"}}, {"eagle3", {"eagle3"}},       {"lookup", {}},
    {"lookahead", {}},     {"medusa", {"medusa"}},       {"hydra", {"hydra"}},
    {"model", {"draft"}},  {"best", {"eagle", "eagle3"}}};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const auto& [method, heads] : kMethods)
        for (const DType type : {DType::F16, DType::Q8_0, DType::Q4_0, DType::Q4_K})
            for (const float temperature : {0.0f, 0.8f})
                all.push_back({method, heads, type, temperature});
    return all;
}

// A sequence and the answer that goes on in it.
struct Place {
    explicit Place(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    std::optional<Generation> answer;
    size_t number = 0;    // the request's
    int rounds_left = 0;  // until it is cancelled; -1: never
};

class Rounds : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        skip_unless_stored(GetParam().type);
        if (IsSkipped()) return;
        LoadOptions options = options_with(GetParam().heads, GetParam().type, GetParam().method);
        options.sequences_in_pass = 8;
        options.prefill_rows = 32;  // several pieces for most prompts
        options.context = 192;      // few pages for a sequence
        model_ = std::make_unique<Bundled>(options);
        std::vector<std::string> prompts = sixty_prompts();
        prompts.resize(size_t(prompt_count()));
        for (size_t i = 0; i < prompts.size(); ++i) {
            Sampling sampling = sampling_at(GetParam().temperature, 1000 + i);
            if (i % 3 == 1) sampling.penalties.repetition = 1.1f;
            if (i % 3 == 2) sampling.filters.top_k = 20;
            Request request = model_->request(model_->encode(prompts[i]),
                                              most_tokens(30 + int(i * 7 % 24)), sampling);
            request.answer.with_logprobs = i % 2 == 0;
            if (i % 4 == 3) request.eos_ids.clear();
            requests_.push_back(request);
        }
    }

    void expect_rounds_change_no_answer(bool has_few_pages);
    void expect_equal(const GenerationResult& got, const GenerationResult& want) {
        EXPECT_EQ(got.ids, want.ids);
        EXPECT_EQ(got.logprobs, want.logprobs);
        EXPECT_EQ(got.text, want.text);
        EXPECT_EQ(got.finish, want.finish);
    }

    std::unique_ptr<Bundled> model_;
    std::vector<Request> requests_;
};

// With few pages the KV cache has room for one sequence of a whole context: answers wait for pages,
// lose theirs, and are read again.
void Rounds::expect_rounds_change_no_answer(bool has_few_pages) {
    const DraftOptions draft = chosen(GetParam().method);
    std::vector<GenerationResult> alone;
    {
        auto plain = model_->drafting(chosen(std::string(kNoDrafts)));
        for (const Request& request : requests_)
            alone.push_back(model_->run(*plain.session, request));
    }
    const BatchLimits limits = model_->limits();
    auto drafter = model_->model().drafter(draft, limits);
    const ModelConfig& config = model_->target().config();
    KvShape shape = kv_shape(config, limits, drafter->reach());
    if (has_few_pages) shape.shared_slots = 1;
    KvPool kv(model_->backend(), shape);
    Batch batch(model_->backend(), model_->target(), kv, *drafter, limits);
    std::mt19937 rng(7);
    int dropped = 0, read_again = 0, cancelled = 0;
    const bool is_fast = test_device() == "cpu";
    for (const int places_count : is_fast ? std::vector{1, 2, 4, 8} : std::vector{2}) {
        std::vector<std::unique_ptr<Place>> places;
        batch.on_full([&](std::span<Sequence* const> kept, bool even_answering) {
            for (auto& place : places) {
                Sequence& sequence = place->sequence;
                if (sequence.pages().slots() == 0 || (place->answer && !even_answering)) continue;
                if (std::find(kept.begin(), kept.end(), &sequence) != kept.end()) continue;
                sequence.forget();
                ++dropped;
                return true;
            }
            return false;
        });
        for (int i = 0; i < places_count; ++i)
            places.push_back(
                std::make_unique<Place>(Sequence(kv, *drafter, config.vocab, limits.context)));
        size_t next = 0, ended = 0;
        for (int round = 0; ended < requests_.size(); ++round) {
            ASSERT_LT(round, 10'000);
            std::vector<Generation*> together;
            for (auto& place : places) {
                // Answers of others begin in between, and some of them are cancelled.
                if (!place->answer && rng() % 3 == 0) {
                    const bool is_other = next == requests_.size() || rng() % 4 == 0;
                    place->number = is_other ? rng() % requests_.size() : next++;
                    place->rounds_left = is_other ? int(rng() % 6) : -1;
                    Request request = requests_[place->number];
                    Place* const own = place.get();
                    if (is_other) request.cancelled = [own] { return own->rounds_left == 0; };
                    place->answer.emplace(batch, place->sequence, model_->tokenizer(), request);
                }
                // Some are late for this round.
                if (place->answer && rng() % 8 != 0) together.push_back(&*place->answer);
            }
            step(together);
            EXPECT_LE(kv.used_pages(), kv.pages());
            for (auto& place : places) {
                if (!place->answer) continue;
                ASSERT_EQ(place->answer->error(), nullptr);
                read_again +=
                    place->answer->is_prefilling() && !place->answer->result().ids.empty();
                if (place->rounds_left > 0) --place->rounds_left;
                if (!place->answer->has_ended()) continue;
                const bool is_other = place->rounds_left >= 0;
                const GenerationResult& result = place->answer->result();
                if (!is_other)
                    expect_equal(result, alone[place->number]), ++ended;
                else
                    ++cancelled;
                const std::vector<int>& want = alone[place->number].ids;
                EXPECT_TRUE(
                    std::equal(result.ids.begin(), result.ids.end(), want.begin(),
                               want.begin() + ptrdiff_t(std::min(want.size(), result.ids.size()))));
                place->answer.reset();
            }
        }
        batch.on_full({});
        places.clear();
        EXPECT_EQ(kv.used_pages(), 0);
    }
    EXPECT_TRUE(cancelled > 0 || !is_fast);
    EXPECT_TRUE(has_few_pages ? dropped > 0 || !is_fast : dropped == 0);
    EXPECT_TRUE(has_few_pages || read_again == 0);
}

TEST_P(Rounds, ChangeNoAnswer) {
    expect_rounds_change_no_answer(false);
}

TEST_P(Rounds, ChangeNoAnswerWithFewPages) {
    expect_rounds_change_no_answer(true);
}

INSTANTIATE_TEST_SUITE_P(Cases, Rounds, testing::ValuesIn(cases()), [](const auto& info) {
    return info.param.method + "_" + std::string(name(info.param.type)) +
           (info.param.temperature > 0 ? "_sampled" : "_greedy");
});

}  // namespace
}  // namespace aerie::test
