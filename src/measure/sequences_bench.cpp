// All passes are real. As in CycleBench, a record says which drafts are true.
#include "measure/sequences_bench.h"

#include <deque>

#include "core/largest_with.h"
#include "engine/costs.h"
#include "measure/forced_acceptance.h"

namespace aerie {

// Sequences that are decoded together in one way, plainly or drafted.
class SequencesBench::Side {
  public:
    Side(Model& model, const Plan& plan, const DraftOptions& draft);
    Side(const Side&) = delete;  // the drafter calls back
    Side& operator=(const Side&) = delete;

    struct Counts {
        double seconds = 0;
        int64_t cycles = 0, tokens = 0, nodes = 0;
    };
    // Cycles of all sequences until the time is used up.
    Counts run();

  private:
    struct Place {
        explicit Place(Sequence made) : sequence(std::move(made)) { cycle.sequence = &sequence; }

        Sequence sequence;
        Cycle cycle;
        std::optional<ForcedAcceptance> forced;
    };

    static BatchLimits limits_of(const Model& model, const Plan& plan);
    DraftOptions hooked(DraftOptions draft);
    ForcedAcceptance& forced_of(const DraftState& state);
    void measure_costs(Model& model);
    void begin();
    bool is_full() const;
    void run_cycle(Counts& counts);
    void force(Place& place, Counts& counts);

    const Plan plan_;
    const BatchLimits limits_;
    std::unique_ptr<Drafter> drafter_;
    KvPool kv_;
    Batch batch_;
    std::deque<Place> places_;
    std::vector<Cycle*> cycles_;
    bool is_measuring_ = false;  // costs, outside of the replay
};

BatchLimits SequencesBench::Side::limits_of(const Model& model, const Plan& plan) {
    BatchLimits limits = model.limits();
    limits.sequences_in_pass = limits.open_sequences = plan.sequences;
    limits.cache_tokens = 0;
    return limits;
}

SequencesBench::Side::Side(Model& model, const Plan& plan, const DraftOptions& draft)
    : plan_(plan),
      limits_(limits_of(model, plan)),
      drafter_(model.drafter(hooked(draft), limits_)),
      kv_(model.backend(), kv_shape(model.files().config, limits_, drafter_->reach())),
      batch_(model.backend(), model.target(), kv_, *drafter_, limits_) {
    measure_costs(model);
    for (int i = 0; i < plan_.sequences; ++i) {
        Place& place = places_.emplace_back(
            Sequence(kv_, *drafter_, model.files().config.vocab, limits_.context));
        cycles_.push_back(&place.cycle);
        if (!plan_.acceptance) continue;
        place.forced.emplace(*plan_.acceptance);
        if (plan_.tau) place.forced->rescale(*plan_.tau);
        // Each sequence replays other texts.
        place.forced->restart(size_t(i) * plan_.acceptance->texts.size() / size_t(plan_.sequences));
    }
    begin();
}

DraftOptions SequencesBench::Side::hooked(DraftOptions draft) {
    draft.tree = plan_.shape;
    if (plan_.acceptance && !plan_.shape)
        draft.on_level = [this](const DraftState& of, std::span<Candidate> table, int first,
                                int last) {
            if (!is_measuring_) forced_of(of).level(table, first, last);
        };
    return draft;
}

ForcedAcceptance& SequencesBench::Side::forced_of(const DraftState& state) {
    const auto found = std::find_if(places_.begin(), places_.end(), [&](Place& place) {
        return &place.sequence.draft() == &state;
    });
    return *found->forced;
}

void SequencesBench::Side::measure_costs(Model& model) {
    CostAware* costs = drafter_->cost_aware();
    if (!costs) return;
    BatchLimits limits = limits_;
    limits.open_sequences = 1;
    limits.context = std::min(limits.context, kMeasureContext);
    is_measuring_ = true;
    Session session(model.backend(), model.target(), *drafter_, limits);
    costs->set_costs(aerie::measure_costs(session, *costs, kMeasureSeconds));
    is_measuring_ = false;
}

void SequencesBench::Side::begin() {
    for (size_t i = 0; i < places_.size(); ++i) {
        std::vector<int> prompt = plan_.prompt;
        prompt[0] = int(i);  // no two texts are the same
        Sequence& sequence = places_[i].sequence;
        sequence.begin({});
        sequence.append(prompt);
        batch_.prefill(sequence);
    }
}

bool SequencesBench::Side::is_full() const {
    return std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return place.sequence.committed() + kMaxDepth + 2 > limits_.context;
    });
}

SequencesBench::Side::Counts SequencesBench::Side::run() {
    constexpr int kLeast = 3;
    Counts counts;
    while (counts.cycles < kLeast || counts.seconds < plan_.round_seconds) run_cycle(counts);
    return counts;
}

// The time that forcing takes is left out.
void SequencesBench::Side::run_cycle(Counts& counts) {
    if (is_full()) begin();
    counts.seconds += seconds_of([&] { batch_.propose(cycles_); });
    if (plan_.acceptance && plan_.shape)
        for (Place& place : places_) place.cycle.tree = place.forced->tree(*plan_.shape);
    for (std::span<Cycle* const> left = cycles_; !left.empty();) {
        const size_t count = batch_.cycles_of_pass(left);
        counts.seconds += seconds_of([&] { batch_.verify(left.first(count)); });
        const size_t first = cycles_.size() - left.size();
        for (size_t i = first; i < first + count; ++i) force(places_[i], counts);
        counts.seconds += seconds_of([&] { batch_.commit(left.first(count)); });
        left = left.subspan(count);
    }
    ++counts.cycles;
}

void SequencesBench::Side::force(Place& place, Counts& counts) {
    Cycle& cycle = place.cycle;
    if (cycle.error) std::rethrow_exception(cycle.error);
    counts.nodes += cycle.tree.size();
    cycle.path =
        accept(cycle.tree, place.forced ? place.forced->choices(cycle.tree) : cycle.choices);
    counts.tokens += place.forced ? place.forced->put_out() : int(cycle.path.nodes.size());
}

SequencesBench::SequencesBench(Model& model, const Plan& plan) {
    times_.sequences = plan.sequences;
    Plan plainly = plan;
    plainly.acceptance = nullptr;
    plainly.shape.reset();
    plain_ = std::make_unique<Side>(model, plainly, DraftOptions{});
    if (plan.acceptance) drafted_ = std::make_unique<Side>(model, plan, model.options().draft);
}

SequencesBench::~SequencesBench() = default;

void SequencesBench::warm_up() {
    plain_->run();
    if (drafted_) drafted_->run();
}

void SequencesBench::round() {
    Side::Counts plain = plain_->run();
    if (drafted_) {
        const Side::Counts drafted = drafted_->run();
        const Side::Counts after = plain_->run();
        plain.seconds += after.seconds;
        plain.tokens += after.tokens;
        const double rate = double(drafted.tokens) / drafted.seconds;
        times_.drafted.add(rate);
        times_.speedup.add(rate * plain.seconds / double(plain.tokens));
        cycles_ += drafted.cycles;
        tokens_ += drafted.tokens;
        nodes_ += drafted.nodes;
    }
    times_.plain.add(double(plain.tokens) / plain.seconds);
}

SequencesTimes SequencesBench::times() const {
    SequencesTimes times = times_;
    if (cycles_ > 0) {
        const double all = double(cycles_) * times.sequences;
        times.tau = double(tokens_) / all;
        times.tree_nodes = double(nodes_) / all;
    }
    return times;
}

int most_sequences(const ModelFiles& files, const LoadOptions& options, const Backend& backend,
                   int limit) {
    const auto fits = [&](int64_t sequences) {
        LoadOptions asked = options;
        asked.sequences = asked.sequences_in_pass = int(sequences);
        asked.cache_tokens = 0;
        return files.fits_in_memory(asked, backend);
    };
    return int(largest_with(fits, 1, limit));
}

}  // namespace aerie
