// The checks, in the order in which a person would search for the cause.
#include "measure/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace aerie {

// Noise in the last bit of every sum causes these errors on the bundled model
// (tests/engine/compare_test.cpp): f32: state 7e-7, KL 1e-12; f16: state 5e-5, KL 4e-9; quantised:
// state 7e-3, KL 9e-5, and forks at margins up to 0.06, whatever the size of the noise, because
// activations then round to other int8 values.
const Tolerance kTolerances[3] = {
    {"f32", 1e-5, 1e-4, 1e-7, 1e-5, 2e-3},
    {"f16", 1e-4, 1e-3, 1e-6, 1e-4, 1e-2},
    {"quantised", 1e-3, 3e-2, 1e-3, 2e-2, 2e-1},
};

const Tolerance& tolerance(const WeightTypes& weights, DType kv) {
    bool exact = kv == DType::F32;
    for (const auto& [type, bytes] : weights) {
        if (is_quantised(type)) return kTolerances[2];
        exact = exact && type == DType::F32;
    }
    return kTolerances[exact ? 0 : 1];
}

std::string scientific(double value) {
    if (value == 0) return "0";
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return "infinity";
    char text[40];
    std::snprintf(text, sizeof(text), "%.1e", value);
    std::string digits = text;
    const size_t sign = digits.find('e') + 1;
    // "1.0e-04" -> "1e-4"
    while (digits.size() > sign + 2 && digits[sign + 1] == '0') digits.erase(sign + 1, 1);
    if (digits[sign] == '+') digits.erase(sign, 1);
    if (digits.compare(1, 2, ".0") == 0) digits.erase(1, 2);
    return digits;
}

namespace {

// Formats a difference of logits.
std::string margin_text(double margin) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.2g", margin);
    return std::isinf(margin) ? "infinity" : text;
}

std::string place(size_t prompt, int token) {
    return "prompt " + std::to_string(prompt + 1) + ", token " + std::to_string(token + 1);
}

Check check(const ComparedDevice& device, const char* name) {
    return {device.name, name, true, "", 0, 0};
}

// Used where there is nothing to compare: then nothing was checked.
void fail(Check& check, const char* why) {
    check.passed = false;
    check.finding = why;
}

// Fails unless the value is within the limit; NaN fails.
void limit(Check& check, double value, double most) {
    check.value = value;
    check.limit = most;
    check.passed = value <= most;
}

Check check_finite(const ComparedDevice& device, const ComparedDevice& reference) {
    Check result = check(device, "finite");
    result.finding = "no NaN and no infinity";
    for (const ComparedOp& op : device.ops) {
        const Difference& d = op.carried;
        if (d.not_finite == 0 && d.reference_not_finite == 0) continue;
        const bool own = d.not_finite > 0;
        limit(result, double(own ? d.not_finite : d.reference_not_finite), 0);
        result.finding = "NaN or infinity first in " + to_string(op.place) + " on " +
                         (own ? device.name : reference.name) +
                         (own && d.reference_not_finite > 0 ? " and " + reference.name : "");
        break;
    }
    return result;
}

// Names the first op beyond the limit, or else the worst op.
Check check_ops(const ComparedDevice& device, const Tolerance& tolerance) {
    Check result = check(device, "ops");
    const ComparedOp* named = nullptr;
    int beyond = 0;
    for (const ComparedOp& op : device.ops) {
        const bool within = op.alone.relative() <= tolerance.op;
        if (!within && beyond++ == 0) named = &op;
        if (beyond == 0 && (!named || op.alone.relative() > named->alone.relative())) named = &op;
    }
    if (!named) {
        fail(result, "the devices have no op in common");
        return result;
    }
    limit(result, named->alone.relative(), tolerance.op);
    if (device.identical()) {
        result.finding = "all " + std::to_string(device.ops.size()) + " ops have the same bits";
        return result;
    }
    result.finding = "relative error " + scientific(result.value) + " in " +
                     to_string(named->place) +
                     (beyond > 1    ? ", the first of " + std::to_string(beyond) + " ops beyond"
                      : beyond == 1 ? ", the only op beyond"
                                    : ", the worst op") +
                     "; " + std::to_string(device.identical_ops()) + " of " +
                     std::to_string(device.ops.size()) + " with the same bits";
    return result;
}

Check check_state(const ComparedDevice& device, const Tolerance& tolerance) {
    Check result = check(device, "final state");
    const ComparedOp* state = final_state(device);
    if (!state || state->carried.values == 0) {
        fail(result, "no values of a final norm were compared");
        return result;
    }
    limit(result, state->carried.relative(), tolerance.state);
    result.finding = "relative error " + scientific(result.value) + " in what the LM head reads";
    return result;
}

void add_kl(std::vector<Check>& checks, const ComparedDevice& device, const Tolerance& tolerance) {
    const KlSummary kl = summarise_kl(device);
    Check mean = check(device, "KL, mean"), most = check(device, "KL, most"),
          top = check(device, "likeliest token");
    limit(mean, kl.mean, tolerance.kl_mean);
    mean.finding =
        scientific(kl.mean) + " nats over " + std::to_string(kl.positions) + " positions";
    limit(most, kl.most, tolerance.kl_most);
    most.finding = scientific(kl.most) + " nats at the worst position";
    limit(top, kl.worst_margin, tolerance.margin);
    top.finding = "the same at " + std::to_string(kl.agreements) + " of " +
                  std::to_string(kl.positions) + " positions";
    if (kl.agreements < kl.positions)
        top.finding +=
            "; elsewhere the reference's margin is at most " + margin_text(kl.worst_margin);
    if (kl.positions == 0)
        for (Check* check : {&mean, &most, &top}) fail(*check, "no position was compared");
    checks.insert(checks.end(), {mean, most, top});
}

Check check_text(const ComparedDevice& device, const Tolerance& tolerance) {
    Check result = check(device, "text");
    size_t equal = 0;
    double worst = -1;
    std::string where;
    for (size_t prompt = 0; prompt < device.texts.size(); ++prompt) {
        const auto& fork = device.texts[prompt].fork;
        equal += !fork;
        if (!fork || fork->margin <= worst) continue;
        worst = fork->margin;
        where = place(prompt, fork->at);
    }
    limit(result, std::max(worst, 0.0), tolerance.margin);
    result.finding = std::to_string(equal) + " of " + std::to_string(device.texts.size()) +
                     " greedy texts equal";
    if (!where.empty())
        result.finding += "; forks at " + where + ", where the margin is " + margin_text(worst);
    return result;
}

// Checks of a device by itself: no errors, and the same text in every way of computing it.
void add_own(std::vector<Check>& checks, const ComparedDevice& device, bool drafts) {
    Check runs = check(device, "decodes"), prefill = check(device, "prefill"),
          drafted = check(device, "drafting");
    runs.finding = "every text decoded";
    prefill.finding = "chooses as decoding does";
    const Acceptance accepted = acceptance(device);
    char tau[40];
    std::snprintf(tau, sizeof(tau), "%.2f", accepted.tau());
    drafted.finding = accepted.cycles == 0
                          ? "nothing was drafted"
                          : "texts as without it, " + std::string(tau) + " tokens a cycle";
    for (size_t prompt = 0; prompt < device.texts.size(); ++prompt) {
        const ComparedText& text = device.texts[prompt];
        if (runs.passed && !text.failure.empty()) {
            limit(runs, 1, 0);
            runs.finding = "prompt " + std::to_string(prompt + 1) + ": " + text.failure;
        }
        if (prefill.passed && text.prefill_fork) {
            limit(prefill, 1, 0);
            prefill.finding =
                "chooses otherwise than decoding at " + place(prompt, *text.prefill_fork);
        }
        if (drafted.passed && (text.drafted_fork || !text.drafted_failure.empty())) {
            limit(drafted, 1, 0);
            drafted.finding = text.drafted_fork
                                  ? "changes the text at " + place(prompt, *text.drafted_fork)
                                  : text.drafted_failure;
        }
    }
    checks.insert(checks.end(), {runs, prefill});
    if (drafts) checks.push_back(drafted);
}

}  // namespace

KlSummary summarise_kl(const ComparedDevice& device) {
    KlSummary sum;
    for (const ComparedText& text : device.texts)
        for (const ComparedPosition& position : text.positions) {
            ++sum.positions;
            sum.agreements += position.margin == 0;
            sum.mean += position.kl;
            sum.most = worse(sum.most, position.kl);
            sum.worst_margin = worse(sum.worst_margin, position.margin);
        }
    if (sum.positions > 0) sum.mean /= sum.positions;
    return sum;
}

bool Verdict::passed() const {
    return !first_failure();
}

const Check* Verdict::first_failure() const {
    const auto failed =
        std::find_if(checks.begin(), checks.end(), [](const Check& c) { return !c.passed; });
    return failed == checks.end() ? nullptr : &*failed;
}

Verdict judge(const Comparison& comparison) {
    Verdict verdict{tolerance(comparison.weights, comparison.kv), {}};
    const ComparedDevice& reference = comparison.devices.front();
    for (const ComparedDevice& device : comparison.devices) {
        if (&device != &reference) {
            verdict.checks.push_back(check_finite(device, reference));
            verdict.checks.push_back(check_ops(device, verdict.tolerance));
            verdict.checks.push_back(check_state(device, verdict.tolerance));
            add_kl(verdict.checks, device, verdict.tolerance);
            verdict.checks.push_back(check_text(device, verdict.tolerance));
        }
        add_own(verdict.checks, device, comparison.drafts);
    }
    return verdict;
}

}  // namespace aerie
