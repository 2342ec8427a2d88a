// Writes acceptance.txt: the proposals of the bundled EAGLE-2 head, grown wide and deep, at every
// position of the target's greedy answers, and which of them are true. The same build always writes
// the same file.
//
// usage: record_acceptance > acceptance.txt   (prompts: those of tests/data, greedy.json and
// prompts.txt)
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "backend/registry.h"
#include "core/error.h"
#include "draft/heads/eagle.h"
#include "engine/generation.h"
#include "engine/model_files.h"
#include "engine/recorded_prompts.h"
#include "measure/recorded_drafts.h"

namespace {

using namespace aerie;

constexpr int kTokens = 128;  // per answer, at most
constexpr int kLevels = 10, kWidth = 10;
constexpr int kMaxRows = 2 * kWidth + 1;  // per level
constexpr float kMinWorth = -7;           // candidates of less worth are left out
constexpr float kTrueWorth = -2;          // least worth of true candidates

// Grows the best kWidth nodes of each level as EAGLE-2 does. A policy that trusts the head more
// than EAGLE-2 does would run other nodes, so the kWidth of most worth are run too; in a worth, a
// first child loses only half of its log-probability. The true continuation is run as well.
// Proposes a bare root, so that the next draft begins one position further.
class Recorder final : public TreeDrafter {
  public:
    explicit Recorder(const DraftSource& source)
        : TreeDrafter(source,
                      {std::make_unique<EagleLevels>(source, reach_of_recorder()),
                       {source.plan.target.layers},
                       {}},
                      reach_of_recorder()) {}

    std::vector<int> text;  // the text that is decoded, and its continuation
    RecordedDrafts::Text drafts;

    TokenTree propose(const DraftRequest& request) override {
        nodes_ = {Node{-1, true, 0}};
        parents_ = {0};
        level_ = 0;
        const auto choose = [this](std::span<const Candidate> table, int first,
                                   Frontier& frontier) { choose_next(table, first, frontier); };
        const auto table = grow(choose, kWidth, request);
        drafts.push_back(encode(draft_of(table)));
        return TokenTree(request.tokens.back());
    }

  private:
    struct Node {
        int entry;  // index in the table; -1: the root
        bool is_true;
        float worth;
        int truth = -1;
        int first_child = -1;  // index in the table
    };

    static TreeDrafterLimits reach_of_recorder() {
        TreeDrafterLimits reach;
        reach.nodes = 2;
        reach.levels = kLevels;
        reach.draft_slots = (kLevels - 1) * kMaxRows;
        reach.grow = {kWidth, kMaxRows, kWidth + (kLevels - 1) * kMaxRows * kWidth};
        return reach;
    }

    void choose_next(std::span<const Candidate> table, int first, Frontier& frontier) {
        // This level's candidates are the children of parents_, kWidth each.
        const size_t place = drafts.size() + size_t(level_) + 1;  // index in the text of this level
        std::vector<Candidate> by_worth(table.begin(), table.end());
        int true_number = -1;
        for (size_t i = 0; i < parents_.size(); ++i) {
            Node& parent = nodes_[size_t(parents_[i])];
            parent.first_child = first + int(i) * kWidth;
            for (int rank = 0; rank < kWidth; ++rank) {
                const int entry = parent.first_child + rank;
                by_worth[size_t(entry)].value = worth(parent, table[size_t(entry)], rank);
                if (!parent.is_true || place >= text.size() ||
                    table[size_t(entry)].token != text[place])
                    continue;
                parent.truth = rank;
                true_number = entry - first;
            }
        }
        if (++level_ == kLevels) return;
        best_frontier(table, first, kWidth, frontier);
        Frontier others;
        best_frontier(by_worth, first, kWidth, others);
        if (true_number >= 0) others.push_back(true_number);
        for (int number : others)
            if (std::find(frontier.begin(), frontier.end(), number) == frontier.end())
                frontier.push_back(number);
        parents_.clear();
        for (int number : frontier) {
            const bool is_true = number == true_number;
            const float worth = by_worth[size_t(first + number)].value;
            parents_.push_back(int(nodes_.size()));
            nodes_.push_back(
                {first + number, is_true, is_true ? std::max(worth, kTrueWorth) : worth});
        }
    }

    static float worth(const Node& parent, const Candidate& child, int rank) {
        return parent.worth + (rank == 0 ? child.log_prob / 2 : child.log_prob);
    }

    // The recorded nodes: those on the true path, and those of enough worth.
    RecordedDraft draft_of(std::span<const Candidate> table) const {
        std::vector<int> node_at(table.size(), -1);  // its node; -1: not run
        for (size_t i = 1; i < nodes_.size(); ++i) node_at[size_t(nodes_[i].entry)] = int(i);
        RecordedDraft draft(1);
        std::vector<int> source = {0};  // the node of each recorded node
        for (size_t at = 0; at < draft.size(); ++at) {
            const Node& node = nodes_[size_t(source[at])];
            draft[at].truth = node.truth;
            for (int rank = 0; rank < kWidth; ++rank) {
                const int entry = node.first_child + rank;
                const Candidate& child = table[size_t(entry)];
                const bool matters = worth(node, child, rank) >= kMinWorth;
                if (!matters && rank > node.truth) break;
                const int below = node_at[size_t(entry)];
                const bool is_run = below >= 0 && (matters || nodes_[size_t(below)].is_true);
                draft[at].children.push_back({child.log_prob, is_run ? int(draft.size()) : -1});
                if (!is_run) continue;
                source.push_back(below);
                draft.emplace_back();
            }
        }
        return draft;
    }

    std::vector<Node> nodes_;
    std::vector<int> parents_;  // the parents of the newest level
    int level_ = 0;
};

// Rounds values as they will be read back, so that a replay ranks them in the same order.
void round_values(const DraftState&, std::span<Candidate> table, int first, int last) {
    for (int i = first; i < last; ++i) {
        Candidate& c = table[size_t(i)];
        c.value = c.log_prob = as_recorded(c.log_prob);
        if (c.parent >= 0) c.value += table[size_t(c.parent)].value;
    }
}

// The drafts for each position of a text at which a cycle can begin. The session decodes it
// plainly.
RecordedDrafts::Text record(Session& session, Recorder& recorder, std::span<const int> prompt,
                            size_t tokens) {
    recorder.drafts.clear();
    session.begin({});
    session.prefill(prompt);
    while (recorder.drafts.size() + 1 < tokens) {
        const TokenTree tree = session.propose();
        session.commit(tree, accept(tree, session.verify(tree)));
    }
    return std::move(recorder.drafts);
}

int record_all() {
    const LoadOptions options = test::bundled_options(DType::F16);
    test::Bundled model(options);
    DraftOptions draft = options.draft;
    draft.on_level = round_values;
    const DraftPlan plan = model.model().files().draft_plan(draft, options, model.limits());
    DraftSource source{model.backend(), model.target(), plan, nullptr};
    source.weights = draft_method(draft.method).load(source);
    Recorder recorder(source);
    Session session(model.backend(), model.target(), recorder, model.limits());
    auto paper = model.drafting(test::draft_options("eagle2"));

    RecordedDrafts recorded;
    int tokens = 0, cycles = 0;
    for (const std::string& prompt : test::recorded_prompts()) {
        Request request = model.request(model.encode(prompt), kTokens);
        const GenerationResult answer = model.run(*paper.session, request);
        if (answer.ids.size() < 2) continue;  // nothing was drafted
        tokens += answer.stats.cycle_tokens;
        cycles += answer.stats.cycles;
        // The last drafts may reach beyond the end of the answer.
        request.eos_ids.clear();
        request.max_tokens = int(answer.ids.size()) + kLevels;
        recorder.text = model.run(*paper.session, request).ids;
        recorded.texts.push_back(record(session, recorder, request.prompt, answer.ids.size()));
        std::fprintf(stderr, "%zu texts, %d tokens\n", recorded.texts.size(), tokens);
    }
    recorded.tau = double(tokens) / double(cycles);
    const std::string text = to_text(recorded);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}

}  // namespace

int main() {
    try {
        return record_all();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "record_acceptance: %s\n", error.what());
        return 1;
    }
}
