// Several texts: in one pass, with weights that are loaded once, forked and cut; and a run that
// repeats when its clock repeats.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/bundled.h"
#include "engine/checks.h"
#include "engine/together.h"
#include "engine/watched_backend.h"

namespace aerie::test {
namespace {

std::vector<int> prompt_of(Bundled& model, size_t i) {
    return model.encode(sixty_prompts()[i]);
}

Sampling cold_and_hot(int text) {
    Sampling sampling = sampling_at(text == 0 ? 0.7f : 1.1f, text == 0 ? 3u : 99u);
    if (text == 1) sampling.filters.top_k = 40;
    return sampling;
}

std::vector<DraftOptions> all_drafts() {
    std::vector<DraftOptions> drafts = {draft_options(kNoDrafts)};
    for (const std::string& method : bundled_methods()) drafts.push_back(draft_options(method));
    for (const char* method : {"chain", "eagle1"}) drafts.push_back(drawn_options(method));
    return drafts;
}

TEST(Batch, TwoTextsInOnePassAreTwoTexts) {
    Bundled model(bundled_options(DType::F16));
    for (const DraftOptions& draft : all_drafts()) {
        const std::string& method = draft.method;
        Together both(model, method, draft);
        std::vector<std::vector<int>> want;
        std::vector<std::vector<Logits>> logits(2);  // by text: the rows of the first cycle
        for (int i = 0; i < 2; ++i) {
            // A session of its own: drafts of one text may change the trees of the next.
            const auto alone = model.drafting(draft);
            Session& session = *alone.session;
            session.begin(cold_and_hot(i));
            session.prefill(prompt_of(model, size_t(i)));
            const TokenTree tree = session.propose();
            session.verify(tree);
            for (int row = 0; row < tree.size(); ++row)
                logits[size_t(i)].push_back(read_logits(model, session, row));
            want.push_back(decode(session, prompt_of(model, size_t(i)), 40, cold_and_hot(i)));
        }
        for (int i = 0; i < 2; ++i) {
            both.sequences[size_t(i)].begin(cold_and_hot(i));
            both.sequences[size_t(i)].append(prompt_of(model, size_t(i)));
            both.batch->prefill(both.sequences[size_t(i)]);
        }
        for (int cycle = 0; cycle < 40; ++cycle) {
            both.batch->propose(both.both);
            both.batch->verify(both.both);
            if (cycle == 0) {
                int first = 0;
                for (const auto& rows : logits)
                    for (const Logits& row : rows) {
                        Logits got(row.size());
                        model.backend().read(both.batch->logits().row_range(first++, 1),
                                             got.data());
                        EXPECT_TRUE(same_bits(got, row)) << method << ", row " << first - 1;
                    }
            }
            for (Cycle& one : both.cycles) one.path = accept(one.tree, one.choices);
            both.batch->commit(both.both);
        }
        for (int i = 0; i < 2; ++i) {
            const auto tokens = both.sequences[size_t(i)].tokens();
            const size_t prompt = prompt_of(model, size_t(i)).size();
            ASSERT_GE(tokens.size(), prompt + 40);
            EXPECT_TRUE(std::equal(want[size_t(i)].begin(), want[size_t(i)].end(),
                                   tokens.begin() + ptrdiff_t(prompt)))
                << method << ", text " << i;
        }
    }
}

TEST(Batch, AHeadIsLoadedOnceForTenSessions) {
    auto device = std::make_unique<WatchedBackend>("cpu");
    WatchedBackend& watched = *device;
    Bundled model(bundled_options(DType::Q8_0), std::move(device));
    const int target_uploads = watched.uploads;
    std::vector<Bundled::Drafting> sessions;
    sessions.push_back(model.drafting(draft_options("eagle2")));
    const int head_uploads = watched.uploads - target_uploads;
    EXPECT_GT(head_uploads, 4);
    const auto bytes = [&] {
        return std::accumulate(watched.allocated.begin(), watched.allocated.end(), size_t(0));
    };
    size_t before = bytes(), second = 0;
    for (int i = 1; i < 10; ++i) {
        sessions.push_back(model.drafting(draft_options(i % 2 ? "chain" : "eagle2")));
        EXPECT_EQ(watched.uploads, target_uploads + head_uploads);
        if (i == 2) second = bytes() - before;
        if (i > 2 && i % 2 == 0) {
            EXPECT_EQ(bytes() - before, second) << "session " << i;
        }
        before = bytes();
    }
    const std::vector<int> prompt = prompt_of(model, 0);
    const std::vector<int> want = decode(*sessions[0].session, prompt, 12);
    for (auto& drafting : sessions) EXPECT_EQ(decode(*drafting.session, prompt, 12), want);
}

// A text that was cut or forked goes on like one that was never longer, and shares the pages that
// it can.
TEST(Sequence, ForksAndCuts) {
    Bundled model(bundled_options(DType::F16));
    for (const std::string method : {"none", "lookup", "chain", "eagle2", "auto"}) {
        const bool is_auto = method == "auto";
        Together both(model, is_auto ? "eagle2" : method,
                      is_auto ? auto_options() : draft_options(method));
        Sequence& sequence = both.sequences[0];
        const std::vector<int> prompt = long_text(2);
        const size_t begin = prompt.size(), length = begin + 90;
        Sampling sampling = sampling_at(0.8f, 5);
        sampling.penalties.repetition = 1.1f;
        sequence.begin(sampling);
        sequence.append(prompt);
        both.batch->prefill(sequence);
        extend(*both.batch, sequence, length);
        const std::vector<int> whole = first_tokens(sequence, length);

        for (size_t cut : {begin, begin + 1, begin + 37, begin + 64}) {
            {
                both.sequences.pop_back();
                both.sequences.push_back(sequence.fork(int(cut)));
                Sequence& other = both.sequences.back();
                EXPECT_GE(other.committed(), int(cut - 1) / kPageSize * kPageSize -
                                                 (method == "auto" ? int(cut) : 2 * kPageSize));
                both.batch->prefill(other);
                extend(*both.batch, other, length);
                EXPECT_EQ(first_tokens(other, length), whole) << method << ", fork at " << cut;
            }
            // The first text may be cut where the fork still reads the shared pages.
            sequence.truncate(int(cut));
            both.batch->prefill(sequence);
            extend(*both.batch, sequence, length);
            EXPECT_EQ(first_tokens(sequence, length), whole) << method << ", cut at " << cut;
        }
        // A text that continues differently equals one that was decoded so from the start.
        const std::vector<int> more = {17, 300, 41};
        std::vector<int> other_prompt(whole.begin(), whole.begin() + ptrdiff_t(begin));
        other_prompt.insert(other_prompt.end(), more.begin(), more.end());
        sequence.truncate(int(begin));
        sequence.append(more);
        both.batch->prefill(sequence);
        extend(*both.batch, sequence, begin + 40);
        const auto fresh = model.drafting(draft_options("none"));
        const std::vector<int> want = decode(*fresh.session, other_prompt, 30, sampling);
        EXPECT_EQ(std::vector<int>(sequence.tokens().begin() + ptrdiff_t(other_prompt.size()),
                                   sequence.tokens().begin() + ptrdiff_t(other_prompt.size()) + 30),
                  want)
            << method;
    }
}

// Trees chosen by measurement repeat when the clock repeats.
TEST(Clock, OfAutoCanBeGivenAndARunRepeated) {
    Bundled model(bundled_options(DType::F16));
    const auto run = [&](double step) {
        auto ticks = std::make_shared<int64_t>(0);
        const Clock clock = [ticks, step] {
            *ticks += 1 + *ticks * 7919 % 5;
            return double(*ticks) * step;
        };
        DraftOptions draft = auto_options();
        draft.clock = clock;
        BatchLimits limits = model.limits();
        limits.clock = clock;
        auto drafting = model.model().start_session(draft, limits);
        drafting.drafter->cost_aware()->set_costs(
            {{{1, 0.010}, {8, 0.012}, {64, 0.030}}, {{1, 0.001}, {10, 0.002}}});
        Session& session = *drafting.session;
        session.begin(sampling_at(0.5f, 7));
        session.prefill(prompt_of(model, 4));
        std::vector<int> nodes;
        for (int cycle = 0; cycle < 40; ++cycle) {
            const TokenTree tree = session.propose();
            nodes.insert(nodes.end(), tree.tokens.begin(), tree.tokens.end());
            nodes.push_back(-1);
            session.commit(tree, accept(tree, session.verify(tree)));
        }
        return nodes;
    };
    const std::vector<int> once = run(1e-3);
    EXPECT_EQ(run(1e-3), once);
    EXPECT_NE(run(1e-5), once) << "the clock must have a say";
}

}  // namespace
}  // namespace aerie::test
