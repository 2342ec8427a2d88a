// Every drafter on the bundled model, with its published tree and with trees chosen by measurement:
// tokens per cycle, and speed over plain decoding. All drafters answer one prompt in turn before
// the next prompt; code edits and summaries are only for drafters without a head, and for best.
// bench_drafters [TOKENS] (default 64)
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "engine/learned_costs.h"
#include "engine/mixed_prompts.h"

namespace {

using namespace aerie;

struct Total {
    double tokens = 0, cycles = 0, cycle_tokens = 0, seconds = 0;
};

// A model with a drafter, and a session for it.
struct Contender {
    Contender(const std::string& name, const std::string& method,
              const std::vector<std::string>& heads, bool is_published)
        : name(name),
          model(options(heads, method)),
          drafting(model.drafting(draft(method, is_published))) {
        LearnedCosts(model.model(), drafting);
    }

    static LoadOptions options(const std::vector<std::string>& heads, const std::string& method) {
        LoadOptions options;
        options.device = "cpu";
        options.model = test::models_dir() / "aerie-tiny";
        options.draft.method = method;
        for (const std::string& head : heads) {
            const auto path = test::models_dir() / ("aerie-tiny-" + head);
            if (options.head.empty())
                options.head = path;
            else
                options.more_heads.push_back(path);
        }
        return options;
    }
    static DraftOptions draft(const std::string& method, bool is_published) {
        DraftOptions options;
        options.method = method;
        options.is_published = is_published;
        if (is_published && method == "lookup") options.tree = TreeShape{};
        return options;
    }

    std::string name;
    test::Bundled model;
    test::Bundled::Drafting drafting;
    Total total = {};
    std::vector<int> ids = {};  // the newest answer
};

using Contenders = std::vector<std::unique_ptr<Contender>>;

Contenders all_contenders() {
    const std::string draft = "draft.gguf";
    Contenders all;
    const auto add = [&](const std::string& name, const std::string& method,
                         const std::vector<std::string>& heads, bool is_published) {
        all.push_back(std::make_unique<Contender>(name, method, heads, is_published));
    };
    add("none", "none", {}, false);
    for (const bool is_published : {true, false}) {
        const std::string trees = is_published ? "" : ", chosen";
        add("lookup" + trees, "lookup", {}, is_published);
        add("lookahead" + trees, "lookahead", {}, is_published);
        add("chain on eagle" + trees, "chain", {"eagle"}, is_published);
        add("eagle1" + trees, "eagle1", {"eagle"}, is_published);
        for (const auto& [method, head] :
             std::vector<std::pair<std::string, std::string>>{{"model", draft},
                                                              {"medusa", "medusa"},
                                                              {"hydra", "hydra"},
                                                              {"eagle2", "eagle"},
                                                              {"eagle3", "eagle3"}})
            add(method + trees, method, {head}, is_published);
    }
    const std::vector<std::string> heads = {"eagle", "eagle3", "medusa", "hydra", draft};
    for (const std::string& head : heads)
        add("grafted on " + head + ", chosen", "grafted", {head}, false);
    add("best", "best", heads, false);
    return all;
}

void answer(Contender& one, const std::string& prompt, int tokens, float temperature, size_t seed) {
    Request request =
        one.model.request(one.model.encode(prompt), tokens, test::sampling_at(temperature, seed));
    request.eos_ids.clear();
    Generation generation(*one.drafting.session, one.model.tokenizer(), request);
    generation.step();  // reads the prompt
    const double start = steady_seconds();
    const size_t before = generation.result().ids.size();
    while (generation.step()) {
    }
    one.total.seconds += steady_seconds() - start;
    const GenerationResult& result = generation.result();
    one.total.tokens += double(result.ids.size() - before);
    one.total.cycles += result.stats.cycles;
    one.total.cycle_tokens += result.stats.cycle_tokens;
    one.ids = result.ids;
}

void race(Contenders& all, const char* what, const std::vector<std::string>& prompts, int tokens,
          float temperature) {
    for (auto& one : all) one->total = {};
    for (size_t i = 0; i < prompts.size(); ++i)
        for (auto& one : all) {
            answer(*one, prompts[i], tokens, temperature, i);
            if (one->ids != all[0]->ids) throw Error(one->name + " says something else");
        }
    std::printf("\n%s, T = %.0f, %zu prompts\n\n", what, double(temperature), prompts.size());
    std::printf("| drafter | tau | tokens/s | over plain |\n|---|---|---|---|\n");
    const auto speed = [](const Contender& one) { return one.total.tokens / one.total.seconds; };
    for (auto& one : all)
        std::printf("| %s | %.2f | %.0f | %.2f |\n", one->name.c_str(),
                    one->total.cycle_tokens / one->total.cycles, speed(*one),
                    speed(*one) / speed(*all[0]));
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const int tokens = argc > 1 ? std::atoi(argv[1]) : 64;
        std::vector<std::string> golden = test::sixty_prompts();
        golden.resize(40);
        Contenders all = all_contenders();
        const auto [edits, summaries] = test::repeating_prompts();
        for (const float temperature : {0.0f, 1.0f})
            race(all, "golden prompts", golden, tokens, temperature);
        std::erase_if(all, [](const auto& one) {
            return one->model.model().files().head && one->name != "best";
        });
        for (const float temperature : {0.0f, 1.0f}) {
            race(all, "code edits", edits, tokens, temperature);
            race(all, "summaries", summaries, tokens, temperature);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_drafters: %s\n", error.what());
        return 1;
    }
}
