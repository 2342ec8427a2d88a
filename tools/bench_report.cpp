// Figures of a benchmark, as an object for machines and as a table for people.
#include "bench_report.h"

#include "core/platform.h"
#include "draft/heads/head.h"
#include "format.h"
#include "model/make/shapes.h"

namespace aerie {

namespace {

Json::Object spread(const Timings& samples) {
    return {{"median_seconds", samples.median()},
            {"min_seconds", samples.min()},
            {"max_seconds", samples.max()},
            {"runs", samples.runs()}};
}

Json cycle_json(const BenchReport& report, const CycleTimes& cycle) {
    return Json::Object{{"tree", cycle.tree},
                        {"tau", cycle.tau},
                        {"tau_is_rescaled", report.tau_is_rescaled},
                        {"tree_nodes", cycle.tree_nodes},
                        {"plain_share", cycle.plain_share},
                        {"seconds", cycle.seconds.median()},
                        {"min_seconds", cycle.seconds.min()},
                        {"max_seconds", cycle.seconds.max()},
                        {"draft_seconds", cycle.draft.median()},
                        {"verify_seconds", cycle.verify.median()},
                        {"rest_seconds", cycle.rest.median()},
                        {"tokens_per_second", report.tokens_per_second(cycle)},
                        {"speedup", cycle.speedup.median()},
                        {"min_speedup", cycle.speedup.min()},
                        {"max_speedup", cycle.speedup.max()},
                        {"cycles", cycle.cycles}};
}

Json sequences_json(const SequencesTimes& times) {
    Json json(Json::Object{{"sequences", times.sequences},
                           {"plain_tokens_per_second", times.plain.median()}});
    if (times.drafted.runs() == 0) return json;
    json.set("tokens_per_second", times.drafted.median());
    json.set("tau", times.tau);
    json.set("tree_nodes", times.tree_nodes);
    json.set("speedup", times.speedup.median());
    json.set("min_speedup", times.speedup.min());
    json.set("max_speedup", times.speedup.max());
    return json;
}

std::string sequences_table(const BenchReport& report) {
    const std::vector<SequencesTimes>& all = report.result.sequences;
    if (all.empty()) return "";
    std::string table = format("%-10s %14s %10s", "sequences", "plain tokens/s", "of each");
    const bool drafts = all.front().drafted.runs() > 0;
    if (drafts)
        table += format("%10s tokens/s %8s %5s %6s %8s", report.head.c_str(), "of each", "tau",
                        "nodes", "x plain");
    table += "\n";
    for (const SequencesTimes& times : all) {
        const double plain = times.plain.median(), drafted = times.drafted.median();
        table += format("%-10d %14.1f %10.1f", times.sequences, plain, plain / times.sequences);
        if (drafts)
            table += format("%19.1f %8.1f %5.2f %6.1f %8.2f (%.2f-%.2f)", drafted,
                            drafted / times.sequences, times.tau, times.tree_nodes,
                            times.speedup.median(), times.speedup.min(), times.speedup.max());
        table += "\n";
    }
    return table + format("memory has room for %d sequences of %d tokens\n",
                          report.result.most_sequences, report.context);
}

}  // namespace

BenchReport::BenchReport(Model& model, const BenchPlan& plan, BenchResult measured)
    : result(std::move(measured)) {
    const Capabilities& caps = model.backend().capabilities();
    name = model.files().target.path.string();
    config = model.files().config;
    device = caps.name;
    description = caps.description;
    threads = caps.threads;
    weights = to_string(model.weights());
    if (plan.acceptance) {
        draft_weights = to_string(model.draft_weights());
        head = model.files().head_config->kind->recorded;
    }
    tau_is_rescaled = plan.tau.has_value();
    kv = aerie::name(model.options().kv);
    prompt_tokens = plan.prompt_tokens;
    context = model.files().context;
    pass_bytes = model.pass_bytes();
    peak_memory_bytes = platform::peak_memory_bytes() - result.probe_bytes;
    const double probe_gb = double(result.probe_bytes) * 1e-9;
    read_gb_per_s = probe_gb / result.read.median();
    copy_gb_per_s = probe_gb / result.copy.median();
    plain_tokens_per_second = 1 / result.plain.median();
    streamed_gb_per_s = double(pass_bytes) * 1e-9 * plain_tokens_per_second;
    prefill_tokens_per_second = prompt_tokens / result.prefill.median();
}

// null for devices that run ops at once.
Json commands_json(const CommandCounts& counts) {
    if (counts.dispatches == 0) return {};
    return Json::Object{{"dispatches", int64_t(counts.dispatches)},
                        {"barriers", int64_t(counts.barriers)},
                        {"submissions", int64_t(counts.submissions)},
                        {"bytes_read", uint64_t(counts.bytes_read)}};
}

Json bench_json(const BenchReport& report) {
    const BenchResult& result = report.result;
    Json::Array passes, cycles;
    for (const PassTimes& pass : result.passes) {
        Json::Object entry = {{"rows", pass.rows}};
        for (auto& field : spread(pass.seconds)) entry.push_back(std::move(field));
        passes.push_back(std::move(entry));
    }
    for (const CycleTimes& cycle : result.cycles) cycles.push_back(cycle_json(report, cycle));
    Json json(Json::Object{{"schema", "aerie-bench-1"},
                           {"model", report.name},
                           {"shape", sizes_json(report.config)},
                           {"device", report.device},
                           {"device_description", report.description},
                           {"threads", report.threads},
                           {"weights", report.weights},
                           {"kv", report.kv},
                           {"prompt_tokens", report.prompt_tokens},
                           {"rounds", result.rounds},
                           {"was_disturbed", report.was_disturbed()},
                           {"read_gb_per_s", report.read_gb_per_s},
                           {"copy_gb_per_s", report.copy_gb_per_s},
                           {"read", spread(result.read)},
                           {"copy", spread(result.copy)},
                           {"pass_bytes", uint64_t(report.pass_bytes)},
                           {"streamed_gb_per_s", report.streamed_gb_per_s},
                           {"read_share", result.read_share.median()},
                           {"prefill_tokens_per_second", report.prefill_tokens_per_second},
                           {"prefill", spread(result.prefill)},
                           {"plain_tokens_per_second", report.plain_tokens_per_second},
                           {"plain", spread(result.plain)},
                           {"passes", std::move(passes)}});
    const bool drafts = !report.draft_weights.empty();
    json.set("draft_weights", drafts ? Json(report.draft_weights) : Json());
    json.set("head", drafts ? Json(report.head) : Json());
    json.set("draft_level_seconds", drafts ? Json(result.draft_level.median()) : Json());
    json.set("draft_level", spread(result.draft_level));
    json.set("acceptance", drafts ? Json(RecordedDrafts::kSchema) : Json());
    json.set("cycle", cycles.empty() ? Json() : cycles.front());
    json.set("cycles", std::move(cycles));
    json.set("commands", Json::Object{{"token", commands_json(result.token_commands)},
                                      {"cycle", commands_json(result.cycle_commands)}});
    Json::Array sequences;
    for (const SequencesTimes& times : result.sequences) sequences.push_back(sequences_json(times));
    json.set("sequences", std::move(sequences));
    json.set("most_sequences", result.most_sequences > 0 ? Json(result.most_sequences) : Json());
    json.set("peak_memory_bytes", uint64_t(report.peak_memory_bytes));
    return json;
}

bool BenchReport::was_disturbed() const {
    constexpr double kMost = 1.3;
    const auto varied = [](const Timings& times) {
        return times.runs() > 1 && times.median() > kMost * times.min();
    };
    return varied(result.plain) || varied(result.read);
}

std::string BenchReport::read_share() const {
    constexpr double kMost = 1.05;  // by the noise of two medians
    const double share = result.read_share.median();
    return share > kMost ? "" : format("%.0f %%", 100 * share);
}

std::string bench_table(const BenchReport& report) {
    const BenchResult& result = report.result;
    const auto spread_of = [](const Timings& s) {
        return format("%10.2f %10.2f %10.2f %6d", s.median() * 1e3, s.min() * 1e3, s.max() * 1e3,
                      s.runs());
    };
    std::string table =
        report.name + ", " + report.weights + " weights, " + report.description + "\n" +
        format("memory    read %.1f GB/s, copy %.1f GB/s; peak %.0f MiB\n", report.read_gb_per_s,
               report.copy_gb_per_s, double(report.peak_memory_bytes) / (1 << 20)) +
        format("prefill   %.1f tokens/s (%d tokens)\n", report.prefill_tokens_per_second,
               report.prompt_tokens) +
        format("plain     %.2f tokens/s, streaming %.1f GB/s: ", report.plain_tokens_per_second,
               report.streamed_gb_per_s) +
        (report.read_share().empty() ? "more than the read got, so it was disturbed or cached"
                                     : report.read_share() + " of what a read gets") +
        "\n" +
        format("%-12s %10s %10s %10s %6s %8s\n", "", "median ms", "min", "max", "runs", "/ T(1)");
    table += "plain token  " + spread_of(result.plain) + "\n";
    for (const PassTimes& pass : result.passes)
        table += format("%2d rows      ", pass.rows) + spread_of(pass.seconds) +
                 format(" %8.2f\n", pass.seconds.median() / result.plain.median());
    if (result.draft_level.runs() > 0)
        table += "draft level  " + spread_of(result.draft_level) +
                 format(" %8.2f  (%s)\n", result.draft_level.median() / result.plain.median(),
                        report.draft_weights.c_str());
    for (const auto& [what, counts] : {std::pair("plain token", result.token_commands),
                                       {"cycle of 60,6,10", result.cycle_commands}})
        if (counts.dispatches > 0)
            table += format("%-16s %ld dispatches, %ld barriers, %ld submissions, %zu bytes read\n",
                            what, counts.dispatches, counts.barriers, counts.submissions,
                            counts.bytes_read);
    for (const CycleTimes& cycle : result.cycles)
        table += format(
            "%s, tree %s: tau %.2f%s, %.1f nodes, %.1f ms a cycle (draft %.1f, verify %.1f), "
            "%.2f tokens/s: %.2f x plain (%.2f-%.2f)\n",
            report.head.c_str(), cycle.tree.c_str(), cycle.tau,
            report.tau_is_rescaled ? " (rescaled)" : "", cycle.tree_nodes,
            cycle.seconds.median() * 1e3, cycle.draft.median() * 1e3, cycle.verify.median() * 1e3,
            report.tokens_per_second(cycle), cycle.speedup.median(), cycle.speedup.min(),
            cycle.speedup.max());
    table += sequences_table(report);
    if (report.was_disturbed())
        table +=
            "The machine was busy: times differed by more than 30 %. Do not rely on these figures; "
            "measure again when nothing else runs.\n";
    return table;
}

}  // namespace aerie
