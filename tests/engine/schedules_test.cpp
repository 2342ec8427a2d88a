// Random schedules of answers that share passes: they arrive, end and are cancelled, begin with a
// part of another text, are cut, saved and loaded, run into the end of the context, and lose their
// pages to others. After each step pages and the KV cache are as they should be, and each answer is
// the one that it is alone.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "engine/bundled.h"
#include "model/make/shapes.h"

namespace aerie::test {
namespace {

constexpr int kVocab = 64, kContext = 150, kMostPlaces = 4;

int schedule_count() {
    const char* count = std::getenv("AERIE_TEST_SCHEDULES");
    return count ? std::atoi(count) : 240;
}

ModelConfig toy_config() {
    ShapeChanges changes;
    changes.hidden = changes.intermediate = 64;
    changes.layers = 2;
    changes.heads = 4;
    changes.kv_heads = 2;
    changes.head_dim = 16;
    changes.vocab = kVocab;
    changes.context = 512;
    return model_shape("llama-3.2-1b", changes);
}

LoadOptions toy_options() {
    LoadOptions options;
    options.device = test_device();
    options.weights = DType::F16;
    options.kv = DType::F16;
    options.draft.method = "eagle2";
    options.context = kContext;
    options.prefill_rows = 32;
    options.sequences = kMostPlaces + 1;  // and a moment for a copy
    options.sequences_in_pass = kMostPlaces;
    return options;
}

class Bytes final : public SaveSink, public SaveSource {
  public:
    void write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    void read(std::span<std::byte> out) override {
        if (out.size() > bytes_.size() - at_) fail("too short");
        std::copy_n(bytes_.begin() + ptrdiff_t(at_), out.size(), out.begin());
        at_ += out.size();
    }
    void fail(const std::string& why) const override { throw Error("bytes: " + why); }
    bool operator==(const Bytes& other) const { return bytes_ == other.bytes_; }

  private:
    std::vector<std::byte> bytes_;
    size_t at_ = 0;
};

// A sequence, and the answer that goes on in it.
struct Place {
    explicit Place(Sequence made) : sequence(std::move(made)) {}

    Sequence sequence;
    std::optional<Generation> answer;
    GenerationResult alone;  // the answer as it is without others
    int rounds_left = -1;    // before it is cancelled; -1: never
};

// Counts of what happened in the schedules of a drafter, so that nothing stays untried.
struct Tally {
    int answers = 0, cancelled = 0, ends_of_context = 0, shared = 0, loaded = 0, dropped = 0,
        read_again = 0, together = 0, drafted = 0;
};

class Schedules : public testing::TestWithParam<std::string> {
  protected:
    // With few pages the pool has room for one sequence of a whole context alone.
    void run(unsigned seed, bool has_few_pages, Tally& tally);

    int below(int count) { return int(random_() % unsigned(count)); }
    Request random_request(std::vector<int> prompt);
    std::vector<int> random_tokens(int count);
    void begin(Batch& batch, Place& place, std::vector<int> prompt);
    void change(Batch& batch, std::deque<Place>& places, Place& place, Tally& tally);
    void save_and_load(KvPool& kv, Place& place);
    void expect_fresh_kv(const Place& place);
    void end(Place& place, Tally& tally);

    const LoadOptions options_ = toy_options();
    Model model_{ModelFiles::random("toy", toy_config(), options_), options_,
                 open_device(options_.device, {options_.threads})};
    const Tokenizer tokenizer_ = Tokenizer::load(models_dir() / "aerie-tiny");
    Model::Drafting plain_ = model_.start_session(draft_options("none"));
    // A text may end a little behind the context.
    Model::Drafting longer_ = model_.start_session(draft_options("none"), [this] {
        BatchLimits limits = model_.limits();
        limits.context += kMaxDepth + 2;
        return limits;
    }());
    std::unique_ptr<Drafter> drafter_;
    std::mt19937 random_;
};

std::vector<int> Schedules::random_tokens(int count) {
    // Few different ones, so that the text itself offers drafts.
    std::vector<int> tokens;
    while (int(tokens.size()) < count) tokens.push_back(3 + below(below(2) ? 4 : kVocab - 3));
    return tokens;
}

Request Schedules::random_request(std::vector<int> prompt) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = below(4) == 0 ? -1 : 1 + below(24);
    request.answer.sampling = sampling_at(below(2) ? 0.8f : 0.0f, random_());
    if (below(3) == 0) request.answer.sampling.penalties.repetition = 1.2f;
    if (below(3) == 0) request.answer.sampling.filters.top_k = 8;
    request.answer.with_logprobs = below(2) == 0;
    request.answer.drafts = below(4) > 0;
    if (below(3) == 0) request.eos_ids = {3};
    return request;
}

void Schedules::begin(Batch& batch, Place& place, std::vector<int> prompt) {
    Request request = random_request(std::move(prompt));
    place.alone = generate(*plain_.session, tokenizer_, request);
    place.rounds_left = below(4) == 0 ? below(8) : -1;
    request.cancelled = [&place] { return place.rounds_left == 0; };
    place.answer.emplace(batch, place.sequence, tokenizer_, request);
}

void Schedules::save_and_load(KvPool& kv, Place& place) {
    Bytes computed, draft;
    place.sequence.save_computed(computed);
    place.sequence.save_draft(draft);
    Sequence loaded(kv, *drafter_, kVocab, kContext);
    loaded.restore(place.sequence.tokens());
    place.sequence.forget();  // gives its pages to the copy
    loaded.load_computed(computed);
    loaded.load_draft(draft);
    place.sequence = std::move(loaded);
}

// The keys and values of a sequence are those of a pass over its tokens alone.
void Schedules::expect_fresh_kv(const Place& place) {
    const int count = place.sequence.committed();
    if (count == 0) return;
    Session& fresh = *longer_.session;
    fresh.begin({});
    fresh.prefill(place.sequence.tokens().first(size_t(count)));
    Bytes got, want;
    place.sequence.save_computed(got);
    fresh.sequence().save_computed(want);
    ASSERT_TRUE(got == want) << count << " positions";
}

// Changes a text that nobody answers at the moment, or begins an answer.
void Schedules::change(Batch& batch, std::deque<Place>& places, Place& place, Tally& tally) {
    Sequence& sequence = place.sequence;
    const int length = int(sequence.tokens().size());
    const Place& other = places[size_t(below(int(places.size())))];
    const int others = int(other.sequence.tokens().size());
    switch (below(8)) {
        case 0:
            return sequence.truncate(below(length + 1));
        case 1:
            if (batch.kv().free_pages() < sequence.pages().slots() / kPageSize) return;
            save_and_load(batch.kv(), place);
            ++tally.loaded;
            return;
        case 2: {  // another text's beginning, with what was computed for it
            if (&other == &place || others == 0) return;
            const int shared = 1 + below(others);
            if (batch.kv().free_pages() == 0) return;  // for what is left of its last page
            sequence.forget();
            sequence = other.sequence.fork(shared);
            ++tally.shared;
            return;
        }
        case 3:  // the end of the context
            return begin(batch, place, random_tokens(kContext - 1 - below(40)));
        default: {
            std::vector<int> prompt(sequence.tokens().begin(), sequence.tokens().end());
            if (below(3) == 0) prompt.resize(size_t(below(length + 1)));
            const std::vector<int> more = random_tokens(1 + below(50));
            prompt.insert(prompt.end(), more.begin(), more.end());
            if (int(prompt.size()) >= kContext) prompt = random_tokens(20);
            return begin(batch, place, std::move(prompt));
        }
    }
}

void Schedules::end(Place& place, Tally& tally) {
    const GenerationResult &got = place.answer->result(), &want = place.alone;
    ASSERT_EQ(place.answer->error(), nullptr);
    ++tally.answers;
    tally.drafted += got.stats.drafted_tokens() > 0;
    if (got.finish == FinishReason::cancelled) {
        ++tally.cancelled;
        ASSERT_LE(got.ids.size(), want.ids.size());
        EXPECT_TRUE(std::equal(got.ids.begin(), got.ids.end(), want.ids.begin()));
    } else {
        EXPECT_EQ(got.ids, want.ids);
        EXPECT_EQ(got.logprobs, want.logprobs);
        EXPECT_EQ(got.text, want.text);
        EXPECT_EQ(got.finish, want.finish);
        tally.ends_of_context += int(place.sequence.tokens().size()) >= kContext;
    }
    place.answer.reset();
}

void Schedules::run(unsigned seed, bool has_few_pages, Tally& tally) {
    random_.seed(seed);
    const BatchLimits limits = model_.limits();
    KvShape shape = kv_shape(model_.target().config(), limits, drafter_->reach());
    if (has_few_pages) shape.shared_slots = 1;
    KvPool kv(model_.backend(), shape);
    Batch batch(model_.backend(), model_.target(), kv, *drafter_, limits);
    std::deque<Place> places;
    batch.on_full([&](std::span<Sequence* const> kept, bool even_answering) {
        for (Place& place : places) {
            if (place.sequence.pages().slots() == 0 || (place.answer && !even_answering)) continue;
            if (std::find(kept.begin(), kept.end(), &place.sequence) != kept.end()) continue;
            place.sequence.forget();
            return ++tally.dropped, true;
        }
        return false;
    });
    const int place_count = 1 + below(kMostPlaces);
    for (int i = 0; i < place_count; ++i)
        places.emplace_back(Sequence(kv, *drafter_, kVocab, kContext));
    const auto is_busy = [&] {
        return std::any_of(places.begin(), places.end(),
                           [](const Place& place) { return place.answer.has_value(); });
    };
    const int rounds = 20 + below(20);
    for (int round = 0; round < rounds || is_busy(); ++round) {
        ASSERT_LT(round, 5'000) << "an answer does not end";
        for (Place& place : places)
            if (!place.answer && round < rounds && below(2) == 0)
                change(batch, places, place, tally);
        std::vector<Generation*> together;
        for (Place& place : places)
            if (place.answer && below(6) > 0) together.push_back(&*place.answer);
        step(together);
        tally.together += together.size() > 1;
        EXPECT_EQ(kv.free_pages() + kv.used_pages(), kv.pages());
        int held = 0;
        for (Place& place : places) held += place.sequence.pages().slots() / kPageSize;
        EXPECT_GE(held, kv.used_pages()) << "pages that nobody holds";
        for (Place& place : places) {
            if (!place.answer) continue;
            tally.read_again +=
                place.answer->is_prefilling() && !place.answer->result().ids.empty();
            if (place.rounds_left > 0) --place.rounds_left;
            if (place.answer->has_ended()) end(place, tally);
        }
        expect_fresh_kv(places[size_t(below(place_count))]);
        if (HasFailure()) return;
    }
    for (const Place& place : places) expect_fresh_kv(place);
    batch.on_full({});
    places.clear();
    EXPECT_EQ(kv.used_pages(), 0);
    EXPECT_EQ(kv.free_pages(), kv.pages());
}

TEST_P(Schedules, ChangeNoAnswer) {
    DraftOptions draft = draft_options(GetParam());
    draft.tree = TreeShape{12, 4, 3};
    if (!draft_method(GetParam()).takes_tree) draft.tree.reset();
    drafter_ = model_.drafter(draft, model_.limits());
    const int count = schedule_count() / 4;
    Tally tally;
    for (int i = 0; i < count && !HasFailure(); ++i) {
        SCOPED_TRACE("schedule " + std::to_string(i));
        run(unsigned(i), i % 2 == 1, tally);
    }
    std::printf(
        "%s: %d schedules, %d answers, %d of them cancelled, %d at the end of the context, "
        "%d with accepted drafts; %d texts shared, %d loaded, %d dropped; %d answers read "
        "again, %d rounds of several\n",
        GetParam().c_str(), count, tally.answers, tally.cancelled, tally.ends_of_context,
        tally.drafted, tally.shared, tally.loaded, tally.dropped, tally.read_again, tally.together);
    for (const int happened : {tally.answers, tally.cancelled, tally.ends_of_context, tally.shared,
                               tally.loaded, tally.dropped, tally.read_again, tally.together})
        EXPECT_GT(happened, 0);
    EXPECT_EQ(tally.drafted > 0, GetParam() != kNoDrafts);
}

INSTANTIATE_TEST_SUITE_P(Drafters, Schedules, testing::Values("none", "lookup", "eagle2", "best"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace aerie::test
