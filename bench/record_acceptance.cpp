// Writes acceptance.json: what the bundled EAGLE-2 head proposes, grown wide and deep, and what the
// target chooses, cycle by cycle of the tree 60,6,10. Output of the same build is the same file.
//
// usage: record_acceptance MODELS PROMPTS.txt > acceptance.json   (a prompt a line; MODELS holds
// aerie-tiny and aerie-tiny-eagle)
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "backend/registry.h"
#include "core/error.h"
#include "draft/eagle.h"
#include "engine/acceptance.h"
#include "engine/generate.h"
#include "engine/runtime.h"
#include "io/json.h"
#include "text/chat_template.h"

namespace {

using namespace aerie;

constexpr int kTokens = 64;  // of each answer
constexpr int kLevels = 10, kWidth = 10;
constexpr float kLeast = -7;  // path values below are negligible
const TreeShape kShape{60, 6, 10};

// Grows the best kWidth nodes of each level as EAGLE-2 does, and the true continuation besides.
class Recorder final : public EagleDrafter, FrontierPolicy {
  public:
    Recorder(const HeadSource& source, const DraftOptions& options)
        : EagleDrafter(source, reach_of_recorder(), options) {}

    // The text that is being decoded; its first `committed` tokens are known to the head.
    std::vector<int> text;
    size_t committed = 0;
    Json::Array cycles;

    TokenTree propose(const DraftContext& context) override {
        nodes_ = {Node{-1, -1, -1, true, true}};
        parents_ = {0};
        level_ = 0;
        const auto table = grow(*this, kWidth, context);
        std::vector<Candidate> regular(table.begin(), table.end());
        for (size_t i = 0; i < regular.size(); ++i)
            if (!regular_[i]) regular[i].value = -INFINITY;
        record(table);
        return tree_of(table, best_entries(regular, 0, int(regular.size()), kShape.nodes - 1),
                       context.pending);
    }

  private:
    struct Node {
        int parent, rank, entry;  // entry: in the table, -1 the root
        bool is_true, is_regular;
        int truth = -1;
        int first_child = -1;  // in the table
    };

    static EagleReach reach_of_recorder() {
        EagleReach reach;
        reach.nodes = kShape.nodes;
        reach.levels = kLevels;
        reach.draft_slots = (kLevels - 1) * (kWidth + 1);
        reach.grow = {kWidth, kWidth + 1, kWidth + (kLevels - 1) * (kWidth + 1) * kWidth};
        return reach;
    }

    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override {
        // This level's candidates are the children of parents_, kWidth each.
        std::vector<Candidate> level(table.begin(), table.end());
        regular_.resize(table.size());
        int true_entry = -1;
        for (int i = first; i < int(table.size()); ++i) {
            Node& parent = nodes_[size_t(parents_[size_t((i - first) / kWidth)])];
            const int rank = (i - first) % kWidth;
            if (rank == 0) parent.first_child = i;
            const size_t place = committed + size_t(level_) + 1;
            if (parent.is_true && place < text.size() && table[size_t(i)].token == text[place])
                true_entry = i, parent.truth = rank;
            regular_[size_t(i)] = parent.is_regular && level_ < kShape.levels;
            if (!parent.is_regular) level[size_t(i)].value = -INFINITY;
        }
        if (++level_ == kLevels) return;
        best_frontier(level, first, kWidth, frontier);
        std::vector<int> next;
        bool has_truth = true_entry < 0;
        const auto add = [&](int number, bool is_regular) {
            const int parent = parents_[size_t(number / kWidth)];
            next.push_back(int(nodes_.size()));
            nodes_.push_back({parent, number % kWidth, first + number, first + number == true_entry,
                              is_regular});
        };
        for (int number : frontier) {
            add(number, true);
            has_truth = has_truth || first + number == true_entry;
        }
        if (!has_truth) {
            frontier.push_back(true_entry - first);
            add(true_entry - first, false);
        }
        parents_ = next;
    }

    // Nodes that matter: those on the true path, and those of some probability.
    void record(std::span<const Candidate> table) {
        Json::Array cycle;
        std::vector<int> index(nodes_.size(), -1);
        for (size_t i = 0; i < nodes_.size(); ++i) {
            const Node& node = nodes_[i];
            const float value = node.entry < 0 ? 0 : table[size_t(node.entry)].value;
            if (node.first_child < 0 || (node.parent >= 0 && index[size_t(node.parent)] < 0) ||
                (value < kLeast && !node.is_true))
                continue;
            index[i] = int(cycle.size());
            Json::Array item = {node.parent < 0 ? -1 : index[size_t(node.parent)], node.rank,
                                node.truth};
            for (int rank = 0; rank < kWidth; ++rank) {
                const Candidate& child = table[size_t(node.first_child + rank)];
                if (child.value < kLeast) break;
                item.push_back(int(std::lround(-100 * child.log_prob)));
            }
            cycle.push_back(std::move(item));
        }
        cycles.push_back(std::move(cycle));
    }

    std::vector<Node> nodes_;
    std::vector<int> parents_;  // nodes that the newest level hangs on
    std::vector<bool> regular_;
    int level_ = 0;
};

// Values as they will be read back, so that a replay ranks them alike.
void as_recorded(std::span<Candidate> table, int first, int last) {
    for (int i = first; i < last; ++i) {
        Candidate& c = table[size_t(i)];
        const float above = c.parent < 0 ? 0 : table[size_t(c.parent)].value;
        c.log_prob = float(std::lround(100 * c.log_prob)) / 100;
        if (above + c.log_prob < kLeast) c.log_prob = AcceptanceRecord::kNegligible;
        c.value = c.log_prob + above;
    }
}

int record(const std::string& models, const std::string& prompts) {
    RuntimeOptions options;
    options.device = "cpu";
    options.model = models + "/aerie-tiny";
    options.head = models + "/aerie-tiny-eagle";
    options.draft.kind = DraftKind::eagle2;
    Runtime runtime(options);
    const ModelFiles files = ModelFiles::open(options);
    DraftOptions draft = options.draft;
    draft.on_level = as_recorded;
    Recorder recorder({runtime.backend(),
                       runtime.target(),
                       *files.head_config,
                       *files.head_checkpoint,
                       {},
                       options.kv,
                       files.context,
                       kPrefillRows},
                      draft);
    const auto none = make_none();
    const SessionLimits limits{files.context, options.kv};
    Session plain(runtime.backend(), runtime.target(), *none, limits);
    Session session(runtime.backend(), runtime.target(), recorder, limits);

    std::ifstream file(prompts);
    if (!file) throw Error(prompts + ": cannot be read");
    int tokens = 0;
    for (std::string line; std::getline(file, line);) {
        Request request;
        request.prompt = apply_chat_template(runtime.tokenizer(), {{"user", line}});
        request.max_tokens = kTokens + kLevels + 1;  // the truth of the last cycles
        recorder.text = generate(plain, runtime.tokenizer(), request).ids;
        session.begin({});
        session.prefill(request.prompt);
        for (recorder.committed = 0; recorder.committed < size_t(kTokens);) {
            const TokenTree tree = session.propose();
            const Turn turn = session.commit(tree, accept(tree, session.verify(tree)));
            recorder.committed += turn.tokens.size();
            tokens += int(turn.tokens.size());
        }
    }
    Json json(Json::Object{
        {"schema", "aerie-acceptance-1"},
        {"about",
         "aerie-tiny with its EAGLE-2 head, f16, greedy. A cycle is a list of drafted nodes, "
         "parents first: [index of its parent, rank among its parent's children, rank of "
         "its true child or -1, log-probabilities of its children by rank in negative "
         "hundredths]. Children of path probability below e^-7 are left out. Made by "
         "bench/record_acceptance.cpp."},
        {"tau", double(tokens) / double(recorder.cycles.size())}});
    json.set("cycles", std::move(recorder.cycles));
    const std::string text = json.dump();
    std::fprintf(stderr, "%d tokens\n", tokens);
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 3) throw UsageError("usage: record_acceptance MODELS PROMPTS.txt");
        return record(argv[1], argv[2]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "record_acceptance: %s\n", error.what());
        return 1;
    }
}
