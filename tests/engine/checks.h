// The checks that the quick suites make of a device: the CPU's bits, the CPU's acceptance, the
// golden texts and tau. They are separate from the suites so that planted faults meet the very same
// checks. A finding is a line for people; it is empty if all is well.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/bundled.h"

namespace aerie::test {

using Logits = std::vector<float>;

inline Logits read_logits(Backend& be, Session& session, int row) {
    Logits logits(size_t(session.logits().cols));
    be.read(session.logits().row_range(row, 1), logits.data());
    return logits;
}
inline Logits read_logits(Bundled& model, Session& session, int row) {
    return read_logits(model.backend(), session, row);
}

inline bool same_bits(const Logits& a, const Logits& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Golden prompts and texts, concatenated.
inline std::vector<int> long_text(size_t texts = 3) {
    const Json greedy = read_data("greedy.json");
    std::vector<int> tokens;
    for (size_t i = 0; i < texts; ++i)
        for (const char* part : {"prompt_ids", "ids"})
            for (int id : ints(*greedy.array()->at(i).find(part))) tokens.push_back(id);
    return tokens;
}

// Logits after a prompt and of every node of a tree, and a sampled text.
struct BitsRun {
    std::vector<Logits> logits;
    std::vector<int> ids;
};

inline BitsRun run_for_bits(Bundled& model) {
    DraftOptions draft = draft_options("eagle2");
    draft.tree = {16, 4, 4};
    auto drafting = model.drafting(draft);
    Session& session = *drafting.session;
    BitsRun run;
    // A page and a half, so that the page table matters.
    std::vector<int> prompt = long_text(1);
    prompt.resize(3 * kPageSize / 2);
    session.begin({});
    session.prefill(prompt);
    run.logits.push_back(read_logits(model, session, 0));
    TokenTree tree(11);
    for (int i = 0; i < 11; ++i) tree.add(20 + i, i / 2);
    session.verify(tree);
    for (int i = 0; i < tree.size(); ++i) run.logits.push_back(read_logits(model, session, i));
    Request request = model.request(model.encode(sixty_prompts()[3]), 10, sampling_at(0.8f, 3));
    request.answer.sampling.filters.top_k = 40;
    run.ids = model.run(session, request).ids;
    return run;
}

// For quantised models, which have the same bits on every device.
inline std::string bits_finding(const BitsRun& want, const BitsRun& got) {
    for (size_t i = 0; i < want.logits.size(); ++i)
        if (!same_bits(got.logits.at(i), want.logits[i]))
            return "the logits of row " + std::to_string(i) + " differ";
    return got.ids == want.ids ? "" : "the sampled texts differ";
}

// How well the drafts of some texts are accepted.
struct AcceptanceRun {
    std::vector<std::vector<int>> ids;
    std::vector<int> by_depth;
    int cycles = 0, tokens = 0;

    double tau() const { return double(tokens) / cycles; }
};

// Every second text is sampled. The texts go past a page border.
inline AcceptanceRun run_for_acceptance(Bundled& model, const DraftOptions& draft, int texts,
                                        int tokens) {
    auto drafting = model.drafting(draft);
    const std::vector<std::string> prompts = sixty_prompts();
    AcceptanceRun run;
    for (int i = 0; i < texts; ++i) {
        const std::string& prompt = prompts[size_t(i) * 37 % prompts.size()];
        Request request = model.request(model.encode(prompt), tokens,
                                        sampling_at(i % 2 ? 0.8f : 0, uint64_t(100 + i)));
        request.eos_ids.clear();
        const GenerationResult got = model.run(*drafting.session, request);
        run.ids.push_back(got.ids);
        run.cycles += got.stats.cycles;
        run.tokens += got.stats.cycle_tokens;
        const std::vector<int>& accepted = got.stats.accepted_by_depth;
        run.by_depth.resize(std::max(run.by_depth.size(), accepted.size()));
        for (size_t d = 0; d < accepted.size(); ++d) run.by_depth[d] += accepted[d];
    }
    return run;
}

constexpr double kTauTolerance = 0.02;  // if the bits of two devices need not agree

// Compares the same model on the CPU and on another device. If the bits agree, each cycle accepts
// the same; otherwise the cycles for the same number of tokens are compared, and one more cycle is
// no finding.
inline std::string acceptance_finding(const AcceptanceRun& want, const AcceptanceRun& got,
                                      bool bits_agree) {
    if (bits_agree && (got.by_depth != want.by_depth || got.cycles != want.cycles))
        return "tau " + std::to_string(got.tau()) + ", the CPU's " + std::to_string(want.tau()) +
               ", though bits agree";
    if (std::abs(got.cycles - want.cycles) > std::max(1.0, kTauTolerance * want.cycles))
        return "tau " + std::to_string(got.tau()) + ", the CPU's " + std::to_string(want.tau());
    return "";
}

struct Tau {
    double tokens = 0, cycles = 0;

    double value() const { return tokens / cycles; }
};

// Result of decoding golden prompts greedily. The ids must agree up to `safe`; a group's tau is
// compared with the reference's passes over the texts that agree entirely.
struct GoldenRun {
    std::map<std::string, Tau> ours, theirs;  // by group, over texts that agree entirely
    std::map<std::string, Tau> all;           // ours, over all texts
    int texts = 0, agree = 0, unsafe = 0;     // unsafe: left the golden ids before `safe`
    int wrong_strings = 0;
};

// Decodes every step-th golden prompt.
inline GoldenRun run_golden(Bundled& model, const char* method, Session& session, size_t step = 1) {
    GoldenRun run;
    const Json greedy = read_data("greedy.json");
    for (size_t i = 0; i < greedy.array()->size(); i += step) {
        const Json& entry = greedy.array()->at(i);
        const std::vector<int> want = ints(*entry.find("ids"));
        const GenerationResult got =
            model.run(session, model.request(ints(*entry.find("prompt_ids")), 128));
        const size_t safe = std::min(size_t(entry.find("safe")->number()), want.size());
        run.unsafe += got.ids.size() < safe ||
                      !std::equal(want.begin(), want.begin() + ptrdiff_t(safe), got.ids.begin());
        ++run.texts;
        const bool agrees = got.ids == want;
        run.agree += agrees;
        run.wrong_strings += agrees && got.text != *entry.find("text")->string();
        const Json* passes = entry.find("passes")->find(method);
        for (const std::string& group : {*entry.find("group")->string(), std::string("all")}) {
            const auto add = [&](Tau& tau, double tokens, double cycles) {
                tau.tokens += tokens;
                tau.cycles += cycles;
            };
            add(run.all[group], got.stats.cycle_tokens, got.stats.cycles);
            if (!agrees || !passes) continue;
            add(run.ours[group], got.stats.cycle_tokens, got.stats.cycles);
            add(run.theirs[group], double(want.size()) - 1, passes->number());
        }
    }
    return run;
}

inline GoldenRun run_golden(Bundled& model, const char* method, const DraftOptions& options,
                            size_t step = 1) {
    auto drafting = model.drafting(options);
    return run_golden(model, method, *drafting.session, step);
}

inline std::string golden_finding(const GoldenRun& run) {
    if (run.unsafe > 0) return std::to_string(run.unsafe) + " texts leave the golden ids";
    if (run.wrong_strings > 0) return std::to_string(run.wrong_strings) + " texts read differently";
    if (run.agree < 0.87 * run.texts) return std::to_string(run.agree) + " texts agree entirely";
    for (const auto& [group, tau] : run.ours)
        if (std::abs(tau.value() / run.theirs.at(group).value() - 1) > 0.015)
            return group + ": tau " + std::to_string(tau.value()) + ", reference " +
                   std::to_string(run.theirs.at(group).value());
    return "";
}

}  // namespace aerie::test
