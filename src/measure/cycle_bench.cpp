// The drafter and all passes are real. A tree of a given shape is drafted on the device, as in
// production; then the record's tree with as many nodes replaces it. A tree that is chosen on the
// host gets the values of its candidates from the record.
#include "measure/cycle_bench.h"

#include "engine/accept.h"
#include "engine/costs.h"

namespace aerie {

namespace {

std::string text_of(const TreeShape& shape) {
    return std::to_string(shape.nodes) + "," + std::to_string(shape.levels) + "," +
           std::to_string(shape.top_k);
}

}  // namespace

CycleBench::CycleBench(Model& model, ForcedAcceptance forced, const Plan& plan)
    : forced_(std::move(forced)), plan_(plan) {
    DraftOptions options = model.options().draft;
    options.tree = plan.shape;
    if (plan.shape)
        options.shape_policy = [this] {
            TreeShape shape = *plan_.shape;
            if (one_level_) shape.levels = 1;
            return shape;
        };
    else
        options.on_level = [this](const DraftState&, std::span<Candidate> table, int first,
                                  int last) { forced_.level(table, first, last); };
    drafting_ = model.start_session(options);
    times_.tree = plan.shape ? text_of(*plan.shape) : "auto";
    if (plan.shape) tau_ = forced_.tau(*plan.shape);
    if (CostAware* drafter = drafting_.drafter->cost_aware())
        drafter->set_costs(measure_costs(session(), *drafter, kMeasureSeconds));
    begin();
    forced_.restart();
}

void CycleBench::begin() {
    session().begin({});
    session().prefill(plan_.prompt);
}

void CycleBench::time_level(Timings& level) {
    if (!plan_.shape || plan_.shape->levels < 2) return;
    const int levels = plan_.shape->levels;
    const auto propose = [&] { session().propose(); };
    propose();  // the head first reads the features of the last cycle
    double used = 0;
    for (int i = 0; i < 16 && used < kRepeatSeconds; ++i) {
        one_level_ = true;
        const double shallow = seconds_of(propose);
        one_level_ = false;
        const double deep = seconds_of(propose);
        level.add((deep - shallow) / (levels - 1));
        used += deep + shallow;
    }
}

// Returns the number of cycles.
int CycleBench::run_cycles(PhaseSeconds& phases, double& total) {
    constexpr int kLeast = 3, kMost = 64;
    int cycles = 0;
    while (cycles < kLeast || (cycles < kMost && total < plan_.round_seconds)) {
        total += cycle_seconds(phases);
        ++cycles;
    }
    return cycles;
}

void CycleBench::warm_up() {
    PhaseSeconds phases;
    double total = 0;
    run_cycles(phases, total);
    nodes_ = tokens_ = plain_cycles_ = 0;
}

void CycleBench::round() {
    const int64_t tokens_before = tokens_;
    PhaseSeconds phases;
    double total = 0;
    const int cycles = run_cycles(phases, total);
    times_.seconds.add(total / cycles);
    times_.draft.add(phases.draft / cycles);
    times_.verify.add(phases.verify / cycles);
    times_.rest.add((total - phases.draft - phases.verify) / cycles);
    times_.cycles += cycles;
    round_taus_.push_back(plan_.shape ? tau_ : double(tokens_ - tokens_before) / cycles);
}

// Excludes the time that forcing takes before and after the pass.
double CycleBench::cycle_seconds(PhaseSeconds& phases) {
    if (session().committed() + kMaxDepth + 2 > session().context()) begin();
    const PhaseSeconds before = session().seconds();
    TokenTree tree = plan_.shape ? forced_.tree(*plan_.shape) : TokenTree(0);
    const double drafted = seconds_of([&] {
        const TokenTree proposed = session().propose();
        if (!plan_.shape) tree = proposed;
        session().verify(tree);
    });
    const Path path = accept(tree, forced_.choices(tree));
    nodes_ += tree.size();
    tokens_ += forced_.put_out();
    plain_cycles_ += tree.size() == 1;
    const double committed = seconds_of([&] { session().commit(tree, path); });
    phases.draft += session().seconds().draft - before.draft;
    phases.verify += session().seconds().verify - before.verify;
    return drafted + committed;
}

CycleTimes CycleBench::times() const {
    CycleTimes times = times_;
    times.tau = plan_.shape ? tau_ : double(tokens_) / times.cycles;
    times.tree_nodes = double(nodes_) / times.cycles;
    times.plain_share = double(plain_cycles_) / times.cycles;
    for (size_t i = 0; i < plain_.size(); ++i)
        times.speedup.add(plain_[i] * round_taus_[i] / times.seconds.values()[i]);
    return times;
}

}  // namespace aerie
