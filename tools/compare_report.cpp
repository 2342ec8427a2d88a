// Figures of a comparison, as an object for machines and as a table for people.
#include "compare_report.h"

#include "core/utf8.h"
#include "format.h"

namespace aerie {

namespace {

template <class T>
Json optional_json(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

Json error_json(const Difference& difference) {
    return Json::Object{{"relative", difference.relative()},
                        {"worst_row", difference.worst_row},
                        {"equal", difference.equal},
                        {"not_finite", difference.not_finite}};
}

Json device_json(const ComparedDevice& device, bool is_reference, bool drafts) {
    Json json(Json::Object{{"name", device.name}, {"description", device.description}});
    if (!is_reference) {
        Json::Array ops;
        for (const ComparedOp& op : device.ops)
            ops.push_back(
                Json::Object{{"layer", op.place.layer < 0 ? Json() : Json(op.place.layer)},
                             {"op", op.place.name},
                             {"values", op.carried.values},
                             {"carried", error_json(op.carried)},
                             {"alone", error_json(op.alone)}});
        const KlSummary kl = summarise_kl(device);
        json.set("identical", device.identical());
        json.set("identical_ops", device.identical_ops());
        json.set("ops", std::move(ops));
        json.set("kl_mean", kl.mean);
        json.set("kl_most", kl.most);
        json.set("positions", kl.positions);
        json.set("agreements", kl.agreements);
        json.set("worst_margin", kl.worst_margin);
    }
    Json drafting;
    if (drafts) {
        const Acceptance sum = acceptance(device);
        drafting = Json::Object{
            {"tau", sum.tau()},
            {"cycles", sum.cycles},
            {"accepted_by_depth", Json::Array(sum.by_depth.begin(), sum.by_depth.end())}};
    }
    json.set("drafting", std::move(drafting));
    return json;
}

Json text_json(const ComparedText& text, bool is_reference) {
    Json json(Json::Object{{"ids", Json::Array(text.ids.begin(), text.ids.end())},
                           {"failure", text.failure.empty() ? Json() : Json(text.failure)},
                           {"prefill_fork", optional_json(text.prefill_fork)},
                           {"drafted_fork", optional_json(text.drafted_fork)}});
    if (is_reference) return json;
    Json::Array kl;
    for (const ComparedPosition& position : text.positions) kl.emplace_back(position.kl);
    json.set("kl", std::move(kl));
    json.set("fork", text.fork ? Json(Json::Object{{"at", text.fork->at},
                                                   {"reference", text.fork->reference},
                                                   {"device", text.fork->device},
                                                   {"margin", text.fork->margin}})
                               : Json());
    return json;
}

Json tolerance_json(const Tolerance& tolerance) {
    return Json::Object{{"for", tolerance.name},        {"op", tolerance.op},
                        {"state", tolerance.state},     {"kl_mean", tolerance.kl_mean},
                        {"kl_most", tolerance.kl_most}, {"margin", tolerance.margin}};
}

std::string depths_line(const ComparedDevice& device) {
    const Acceptance sum = acceptance(device);
    std::string line = format("%.2f tokens a cycle; accepted by depth", sum.tau());
    for (int accepted : sum.by_depth) line += format(" %.0f%%", 100.0 * accepted / sum.cycles);
    return line;
}

// "cpu #2, prompt 1, token 8: 'x' in place of 'y' (margin 0.1)".
std::string fork_lines(const CompareReport& report, size_t device) {
    std::string lines;
    const std::vector<ComparedText>& texts = report.comparison.devices[device].texts;
    for (size_t i = 0; i < texts.size(); ++i) {
        const std::optional<Fork>& fork = texts[i].fork;
        if (!fork) continue;
        const size_t at = report.comparison.prompts[i].size() + size_t(fork->at);
        lines += report.comparison.devices[device].name +
                 format(", prompt %zu, token %d: ", i + 1, fork->at + 1) +
                 (fork->device < 0 ? "the end" : in_quotes(report.fork_pieces[i][device])) +
                 " in place of " +
                 (fork->reference < 0 ? "the end" : in_quotes(report.pieces[i][at])) +
                 format(" (margin %.2g)\n", fork->margin);
    }
    return lines;
}

std::string errors_table(const CompareReport& report, const ComparedDevice& device) {
    std::string table = "\n" + device.name + " against " + report.reference().name + "\n" +
                        format("%-14s %10s %10s   %-16s %10s %14s\n", "", "carried", "worst row",
                               "worst op", "alone", "same bits");
    for (const LayerSummary& layer : summarise_layers(device))
        table +=
            format("%-14s %10s %10s   %-16s %10s %8d of %d\n", layer.name.c_str(),
                   scientific(layer.last->carried.relative()).c_str(),
                   scientific(layer.last->carried.worst_row).c_str(),
                   layer.worst->alone.relative() == 0 ? "-" : layer.worst->place.name.c_str(),
                   scientific(layer.worst->alone.relative()).c_str(), layer.identical, layer.ops);
    return table;
}

}  // namespace

std::vector<LayerSummary> summarise_layers(const ComparedDevice& device) {
    std::vector<LayerSummary> layers;
    int open = -1;
    for (const ComparedOp& op : device.ops) {
        if (layers.empty() || op.place.layer < 0 || op.place.layer != open) {
            open = op.place.layer;
            layers.push_back(
                {open < 0 ? op.place.name : "layer " + std::to_string(open), &op, &op, 0, 0});
        }
        LayerSummary& layer = layers.back();
        layer.last = &op;
        const double worst = layer.worst->alone.relative();
        if (!(worse(worst, op.alone.relative()) <= worst)) layer.worst = &op;
        ++layer.ops;
        layer.identical += op.alone.identical();
    }
    return layers;
}

Json compare_json(const CompareReport& report) {
    const Comparison& comparison = report.comparison;
    Json::Array devices, prompts, checks;
    for (const ComparedDevice& device : comparison.devices)
        devices.push_back(device_json(device, &device == &report.reference(), comparison.drafts));
    for (size_t i = 0; i < comparison.prompts.size(); ++i) {
        const std::vector<int>& ids = comparison.prompts[i];
        Json::Array texts;
        for (const ComparedDevice& device : comparison.devices)
            texts.push_back(text_json(device.texts[i], &device == &report.reference()));
        prompts.push_back(Json::Object{{"prompt_ids", Json::Array(ids.begin(), ids.end())},
                                       {"texts", std::move(texts)}});
    }
    for (const Check& check : report.verdict.checks)
        checks.push_back(Json::Object{{"device", check.device},
                                      {"name", check.name},
                                      {"passed", check.passed},
                                      {"value", check.value},
                                      {"limit", check.limit},
                                      {"finding", check.finding}});
    const bool drafts = comparison.drafts;
    return Json::Object{{"schema", "aerie-compare-1"},
                        {"model", report.model},
                        {"weights", report.weights},
                        {"kv", report.kv},
                        {"draft_weights", drafts ? Json(report.draft_weights) : Json()},
                        {"tree", drafts ? Json(report.tree) : Json()},
                        {"max_tokens", report.max_tokens},
                        {"passed", report.verdict.passed()},
                        {"tolerance", tolerance_json(report.verdict.tolerance)},
                        {"checks", std::move(checks)},
                        {"devices", std::move(devices)},
                        {"prompts", std::move(prompts)}};
}

std::string compare_table(const CompareReport& report) {
    const Comparison& comparison = report.comparison;
    std::string table =
        report.model + ", " + report.weights + " weights, " + report.kv +
        format(" KV cache, %zu prompt%s, at most %d tokens\n", comparison.prompts.size(),
               comparison.prompts.size() == 1 ? "" : "s", report.max_tokens);
    for (const ComparedDevice& device : comparison.devices)
        table += format("%-14s %s%s\n", device.name.c_str(), device.description.c_str(),
                        &device == &report.reference() ? " (the reference)" : "");
    for (const ComparedDevice& device : comparison.devices)
        if (&device != &report.reference()) table += errors_table(report, device);
    table += "\n";
    for (const ComparedDevice& device : comparison.devices)
        table += device.name + ": " +
                 (comparison.drafts ? depths_line(device) : "nothing was drafted") + "\n";
    for (size_t i = 1; i < comparison.devices.size(); ++i) table += fork_lines(report, i);
    table += "\n";
    for (const Check& check : report.verdict.checks)
        table += format("%-4s  %-14s %-16s ", check.passed ? "ok" : "FAIL", check.device.c_str(),
                        check.name.c_str()) +
                 check.finding +
                 (check.limit > 0 ? " (limit " + scientific(check.limit) + ")" : "") + "\n";
    const Check* failure = report.verdict.first_failure();
    return table +
           (failure ? "\nFAIL: " + failure->device + ", " + failure->name + ": " + failure->finding
                    : format("\nPASS: within the tolerances for %s weights",
                             report.verdict.tolerance.name)) +
           "\n";
}

}  // namespace aerie
