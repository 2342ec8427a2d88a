// The comparison as a page: the verdict, errors by layer and op, the texts. One file, inline SVG,
// no scripts.
#include <algorithm>
#include <cmath>

#include "compare_plots.h"
#include "compare_report.h"
#include "format.h"
#include "page.h"

namespace aerie {

namespace {

constexpr size_t kOpenTexts = 4;  // further ones are collapsed

constexpr const char* kTextStyle = R"css(
.verdict{display:inline-block;padding:.15rem .8rem;border-radius:1rem;color:#fff;font-weight:650;
font-size:1rem;vertical-align:middle;margin-right:.7rem;background:var(--third)}
.failure{color:var(--accent);font-weight:650;margin:.6rem 0}
.verdict.fail{background:var(--accent)}td.fail{color:var(--accent);font-weight:650}td.ok{color:var(--third)}
td.wide,th.wide{text-align:left!important;white-space:normal}td.name{white-space:nowrap!important}h3{font-size:1rem;margin:1.2rem 0 .2rem}
.text{white-space:pre-wrap;overflow-wrap:anywhere;font:15px/1.7 ui-monospace,monospace;margin:.4rem 0;max-width:none}
.text .said{color:var(--soft)}.text+.text{border-top:1px solid var(--line);padding-top:.5rem}
.tiles{grid-template-columns:repeat(auto-fit,minmax(16rem,1fr))}
.k1{background:color-mix(in srgb,var(--second) 14%,transparent)}
.k2{background:color-mix(in srgb,var(--second) 32%,transparent)}
.k3{background:color-mix(in srgb,var(--second) 60%,transparent)}
.k4{background:color-mix(in srgb,var(--accent) 55%,transparent)}
.fork{border-bottom:2px solid var(--accent);font-weight:650}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--soft)}
)css";

// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    return escaped(text);
}

std::string others(const CompareReport& report) {
    std::vector<std::string> names;
    for (size_t i = 1; i < report.comparison.devices.size(); ++i)
        names.push_back(report.comparison.devices[i].name);
    return listed(names);
}

bool failed(const CompareReport& report, const std::string& device) {
    return std::any_of(report.verdict.checks.begin(), report.verdict.checks.end(),
                       [&](const Check& c) { return !c.passed && c.device == device; });
}

std::string headline(const CompareReport& report) {
    const std::vector<ComparedDevice>& devices = report.comparison.devices;
    const std::string reference = escaped(report.reference().name);
    const Check* failure = report.verdict.first_failure();
    std::string text;
    if (!failure) {
        const bool identical =
            std::all_of(devices.begin() + 1, devices.end(),
                        [](const ComparedDevice& device) { return device.identical(); });
        text = others(report) + (devices.size() > 2 ? " compute " : " computes ") +
               (identical ? "bit for bit what " : "what ") + reference + " computes";
    } else if (failed(report, report.reference().name)) {
        text = reference + ", the reference, contradicts itself";
    } else {
        std::vector<std::string> names;
        for (const ComparedDevice& device : devices)
            if (failed(report, device.name)) names.push_back(device.name);
        text = listed(names) + (names.size() > 1 ? " do not compute " : " does not compute ") +
               "what " + reference + " computes";
    }
    std::string html = std::string("<h1><span class=\"verdict") +
                       (failure ? " fail\">fail" : "\">pass") + "</span>" + text + "</h1>\n";
    if (failure)
        html += "<p class=failure>" + escaped(failure->device) + ", " + failure->name + ": " +
                escaped(failure->finding) + "</p>\n";
    return html;
}

std::string device_tiles(const CompareReport& report, const ComparedDevice& device) {
    const Tolerance& tolerance = report.verdict.tolerance;
    const KlSummary kl = summarise_kl(device);
    const ComparedOp* state = final_state(device);
    size_t equal = 0;
    for (const ComparedText& text : device.texts) equal += !text.fork;
    std::string html = "<div class=tiles>\n";
    html += tile(
        format("%lld of %zu", static_cast<long long>(device.identical_ops()), device.ops.size()),
        "ops with the same bits, given the same inputs");
    html += tile(scientific(state ? state->carried.relative() : 0),
                 "relative error of the final state; limit " + scientific(tolerance.state));
    html += tile(scientific(kl.mean), "nats of KL, mean; at most " + scientific(kl.most) +
                                          ", limit " + scientific(tolerance.kl_most));
    html += tile(format("%.4g %%", 100.0 * kl.agreements / std::max(kl.positions, 1)),
                 format("of %d positions with the same likeliest token", kl.positions));
    html += tile(format("%zu of %zu", equal, device.texts.size()), "greedy texts equal");
    if (report.comparison.drafts)
        html += tile(format("%.2f", acceptance(device).tau()),
                     format("tokens a cycle, tree %s; %.2f on ", report.tree.c_str(),
                            acceptance(report.reference()).tau()) +
                         escaped(report.reference().name));
    return html + "</div>\n";
}

// The shade for a KL by its power of ten below the limit.
const char* shade(double kl, double limit) {
    if (!(kl <= limit)) return "k4";
    if (kl > limit / 10) return "k3";
    if (kl > limit / 100) return "k2";
    return kl > limit / 1000 ? "k1" : "";
}

// A prompt and the reference's answer; tokens are shaded by how much the devices differ there.
std::string text_block(const CompareReport& report, size_t prompt) {
    const std::vector<std::string>& pieces = report.pieces[prompt];
    const size_t asked = report.comparison.prompts[prompt].size();
    const std::vector<ComparedDevice>& devices = report.comparison.devices;
    std::string html = "<p class=text><span class=said>";
    for (size_t i = 0; i < pieces.size(); ++i) {
        if (i == asked) html += "</span>";
        double kl = 0;
        std::string forks;
        for (size_t d = 1; d < devices.size(); ++d) {
            const ComparedText& text = devices[d].texts[prompt];
            if (i > 0 && i - 1 < text.positions.size()) kl = worse(kl, text.positions[i - 1].kl);
            if (text.fork && i == asked + size_t(text.fork->at))
                forks += "<span class=fork title=\"margin " + scientific(text.fork->margin) +
                         "\">[" + escaped(devices[d].name) + ": " +
                         escaped(report.fork_pieces[prompt][d]) + "]</span>";
        }
        const std::string style = shade(kl, report.verdict.tolerance.kl_most);
        html += forks;
        html += style.empty() ? escaped(pieces[i])
                              : "<span class=" + style + " title=\"KL " + scientific(kl) + "\">" +
                                    escaped(pieces[i]) + "</span>";
    }
    return html + (pieces.size() <= asked ? "</span>" : "") + "</p>\n";
}

std::string texts(const CompareReport& report) {
    std::string html;
    const size_t count = report.pieces.size();
    for (size_t i = 0; i < count; ++i) {
        if (i == kOpenTexts)
            html += format("<details><summary>%zu further texts</summary>\n", count - kOpenTexts);
        html += text_block(report, i);
    }
    return html + (count > kOpenTexts ? "</details>\n" : "");
}

std::string checks(const CompareReport& report) {
    std::string html =
        "<figure><table><tr><th>device<th class=wide>check<th>result<th>limit<th "
        "class=wide>finding</tr>\n";
    for (const Check& check : report.verdict.checks)
        html += "<tr><td class=name>" + escaped(check.device) + "<td class=\"wide name\">" +
                check.name + (check.passed ? "<td class=ok>ok" : "<td class=fail>FAIL") + "<td>" +
                (check.limit > 0 ? scientific(check.limit) : "") + "<td class=wide>" +
                escaped(check.finding) + "</tr>\n";
    return html + "</table></figure>\n";
}

std::string section(const std::string& title, const std::string& what, const std::string& figure) {
    return "<h2>" + title + "</h2>\n<p class=soft>" + what + "</p>\n<figure>" + figure +
           "</figure>\n";
}

}  // namespace

std::string compare_page(const CompareReport& report) {
    const std::vector<ComparedDevice>& devices = report.comparison.devices;
    const std::string reference = escaped(report.reference().name);
    std::string html = page_begin("aerie compare: " + others(report) + " against " + reference,
                                  std::string(kPlotStyle) + kTextStyle);
    html += headline(report) + "<p class=soft>" + escaped(report.model) + ", " + report.weights +
            " weights, " + report.kv +
            format(" KV cache, %zu prompt%s, at most %d tokens each</p>\n",
                   report.comparison.prompts.size(),
                   report.comparison.prompts.size() == 1 ? "" : "s", report.max_tokens);
    for (const ComparedDevice& device : devices)
        html += "<p class=soft><b>" + escaped(device.name) + "</b> " + escaped(device.description) +
                (&device == &devices.front() ? " (the reference)" : "") + "</p>\n";
    for (size_t i = 1; i < devices.size(); ++i)
        html += (devices.size() > 2 ? "<h3>" + escaped(devices[i].name) + "</h3>\n" : "") +
                device_tiles(report, devices[i]);
    html += section("Error from layer to layer",
                    "Relative error of the hidden state after each layer, with all that it "
                    "inherits from the layers and positions before. Dotted: the worst row.",
                    layer_plot(report));
    for (size_t i = 1; i < devices.size(); ++i)
        html += section(
            "Each op by itself: " + escaped(devices[i].name),
            "Relative error of every op when it is given the inputs that " + reference + " had.",
            op_map(report, devices[i]));
    html += section("KL along the text",
                    "KL(" + reference +
                        " || device) of the next token's distribution, in nats, after each token "
                        "of prompts (grey) and answers. Rings: another likeliest token.",
                    kl_plot(report));
    if (report.comparison.drafts)
        html += section("Acceptance by depth",
                        "Share of draft-and-verify cycles that put out a drafted token of this "
                        "depth; head in " +
                            report.draft_weights + ", tree " + report.tree + ".",
                        acceptance_plot(report));
    return html + "<h2>What " + reference +
           " said</h2>\n<p class=soft>Tokens are shaded where devices differ about them: from a "
           "thousandth of the limit on, red beyond it. In brackets: what another device says "
           "where its text forks.</p>\n<figure>" +
           texts(report) + "</figure>\n<h2>Checks</h2>\n" + checks(report) + page_end();
}

}  // namespace aerie
