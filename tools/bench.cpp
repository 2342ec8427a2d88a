// `aerie bench`: the table to stderr, the JSON object to stdout, the page to a file.
#include <algorithm>

#include "assumed.h"
#include "bench_report.h"
#include "commands.h"
#include "core/error.h"
#include "core/replaced_file.h"
#include "draft/heads/kinds.h"
#include "terminal.h"

namespace aerie {

namespace {

// Room for the prompt, the tokens decoded after it, and a tree.
constexpr int kDecodedTokens = 384;

// The recorded acceptance that is replayed is that of EAGLE heads.
LoadOptions located(const BenchOptions& options) {
    if (options.like) return locate_nothing(options.model);
    LoadOptions runtime = locate(options.model);
    // Recorded acceptance is that of a head's own trees, without grafts.
    if (!options.model.draft && !runtime.head.empty())
        runtime.draft.method = head_kind(runtime.head).method.name;
    const DraftMethod& method = draft_method(runtime.draft.method);
    if (method.is_replayed) return runtime;
    if (options.model.head)
        throw UsageError(runtime.head.string() + ": " + method.wants +
                         "; aerie bench takes an EAGLE head, or --draft none");
    if (!options.quiet)
        print_note("(no EAGLE head beside " + runtime.model.string() +
                   ": plain decoding alone is measured)");
    runtime.draft.method = kNoDrafts;
    return runtime;
}

Model load(const BenchOptions& options, ProgressLine& progress) {
    LoadOptions runtime = located(options);
    runtime.context = options.prompt_tokens + kDecodedTokens;
    if (!options.sequences.empty())
        runtime.sequences = runtime.sequences_in_pass =
            *std::max_element(options.sequences.begin(), options.sequences.end());
    runtime.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    if (!options.like) return Model(ModelFiles::open(runtime), runtime);
    const ModelConfig config = model_shape(*options.like, options.changes);
    return Model(ModelFiles::random(*options.like, config, runtime), runtime);
}

BenchPlan plan_of(const BenchOptions& options, ProgressLine& progress) {
    BenchPlan plan;
    if (!options.rows.empty()) plan.rows = options.rows;
    plan.sequences = options.sequences;
    plan.prompt_tokens = options.prompt_tokens;
    plan.tau = options.tau;
    plan.seconds = options.seconds;
    plan.on_progress = [&](const std::string& stage) { progress.show(stage); };
    plan.cancelled = interrupted;
    return plan;
}

}  // namespace

int run_bench(const BenchOptions& options) {
    std::optional<ReplacedFile> page;
    if (options.html) page.emplace(*options.html);  // an error must not cost the measurement
    ProgressLine progress(options.quiet);
    Model model = load(options, progress);
    if (!options.quiet) tell_unused(options.model, model.options().draft.method);
    BenchPlan plan = plan_of(options, progress);
    RecordedDrafts acceptance;
    if (model.options().draft.method != kNoDrafts) {
        acceptance = read_recorded_drafts(find_acceptance());
        plan.acceptance = &acceptance;
    }
    end_cleanly_on_signals();
    BenchResult result = run_benchmark(model, plan);
    progress.clear();
    if (result.cancelled) return interrupted();
    const BenchReport report(model, plan, std::move(result));
    if (!options.quiet) tell(bench_table(report));
    if (options.model.profile) print_op_times(model.backend());
    if (page) page->commit(bench_page(report));
    if (options.json) print(bench_json(report).dump() + "\n");
    return 0;
}

}  // namespace aerie
