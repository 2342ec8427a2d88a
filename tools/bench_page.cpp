// The benchmark as a page: figures, the T(M) curve, the cost of a token, the table. One file,
// inline SVG, no scripts.
#include <algorithm>
#include <cmath>

#include "bench_report.h"
#include "format.h"
#include "page.h"
#include "plot.h"

namespace aerie {

namespace {

constexpr const char* kBenchStyle = R"css(
.spread{stroke:var(--first);stroke-width:6;opacity:.25;stroke-linecap:round}
.verify{fill:var(--first)}.draft{fill:var(--second)}.rest{fill:var(--rest)}
)css";

// "1.23 s", "45.6 ms" or "789 µs".
std::string duration(double seconds) {
    if (seconds >= 1) return short_number(seconds) + " s";
    return seconds >= 1e-3 ? short_number(seconds * 1e3) + " ms"
                           : short_number(seconds * 1e6) + " µs";
}

std::string tiles(const BenchReport& report) {
    std::string html = "<div class=tiles>\n";
    html += tile(short_number(report.plain_tokens_per_second) + " tok/s", "plain decoding");
    for (const CycleTimes& cycle : report.result.cycles)
        html +=
            tile(short_number(cycle.speedup.median()) + " ×",
                 format("%s, tree %s: %s tok/s at τ = %.2f%s", report.head.c_str(),
                        cycle.tree.c_str(), short_number(report.tokens_per_second(cycle)).c_str(),
                        cycle.tau, report.tau_is_rescaled ? " (rescaled)" : ""));
    if (!report.read_share().empty())
        html += tile(report.read_share(),
                     format("of the read bandwidth: plain decoding streams %.1f of %.1f GB/s",
                            report.streamed_gb_per_s, report.read_gb_per_s));
    html += tile(short_number(report.prefill_tokens_per_second) + " tok/s",
                 format("prefill of %d tokens", report.prompt_tokens));
    return html + "</div>\n";
}

// Milliseconds per pass over rows per pass, both logarithmic.
class CurveChart {
  public:
    explicit CurveChart(const BenchReport& report)
        : report_(report),
          floor_(double(report.pass_bytes) / (report.read_gb_per_s * 1e9)),
          seconds_(seconds_axis(report, floor_)),
          plot_({1, std::max(2.0, double(most_rows())), true, 30}, seconds_, 400, 52) {}

    std::string svg() {
        add_axes();
        add_reference_lines();
        std::vector<std::pair<double, double>> points;
        for (const PassTimes& pass : report_.result.passes) {
            plot_.line("spread", pass.rows, pass.seconds.min(), pass.rows, pass.seconds.max());
            points.emplace_back(pass.rows, pass.seconds.median());
        }
        plot_.curve("curve", points);
        for (const PassTimes& pass : report_.result.passes) {
            const std::string time = duration(pass.seconds.median());
            plot_.dot("dot", pass.rows, pass.seconds.median(), 4.5,
                      format("%d rows: ", pass.rows) + time);
            const double px = plot_.x(pass.rows), py = plot_.y(pass.seconds.median());
            const bool below = plot_.y(floor_) - py > 44;  // the rows x token line is above
            if (!crowded(pass))
                plot_.text("class=strong text-anchor=middle", px, below ? py + 24 : py - 13, time);
        }
        return plot_.svg("Time of a pass");
    }

  private:
    static Axis seconds_axis(const BenchReport& report, double floor) {
        double low = std::min(report.result.plain.median(), floor);
        double high = report.result.plain.median();
        for (const PassTimes& pass : report.result.passes) {
            low = std::min(low, pass.seconds.min());
            high = std::max(high, pass.seconds.max());
        }
        return {low / 1.25, high * 1.25, true, 0};
    }
    int most_rows() const {
        int most = 1;
        for (const PassTimes& pass : report_.result.passes) most = std::max(most, pass.rows);
        return most;
    }
    // Whether the label of the next point would overlap this one's.
    bool crowded(const PassTimes& pass) const {
        for (const PassTimes& other : report_.result.passes)
            if (other.rows > pass.rows && plot_.x(other.rows) - plot_.x(pass.rows) < 40)
                return true;
        return false;
    }

    void add_axes() {
        for (double decade = 1e-7; decade < 1e3; decade *= 10)
            for (const int step : {1, 2, 5}) {
                const double seconds = decade * step;
                if (seconds >= seconds_.low && seconds <= seconds_.high)
                    plot_.grid(seconds, duration(seconds));
            }
        for (const PassTimes& pass : report_.result.passes)
            if (!crowded(pass))
                plot_.text("text-anchor=middle", plot_.x(pass.rows), plot_.base() + 22,
                           std::to_string(pass.rows));
        plot_.text("text-anchor=middle", (Plot::kLeft + Plot::kRight) / 2, plot_.base() + 44,
                   "rows in one pass");
    }

    // Without sharing, each row would cost a pass of its own. If a pass only read the weights once,
    // at the read bandwidth and without arithmetic, further rows would be free.
    void add_reference_lines() {
        const double one = report_.result.plain.median();
        const double end = std::min<double>(most_rows(), seconds_.high / one);
        plot_.line("reference", 1, one, end, one * end);
        plot_.line("floor", 1, floor_, most_rows(), floor_);
        plot_.text("class=accent text-anchor=end", plot_.x(std::sqrt(end)) - 12,
                   plot_.y(one * std::sqrt(end)) - 8, "rows × a plain token");
        plot_.text("text-anchor=end", plot_.x(most_rows()), plot_.y(floor_) - 7,
                   "weights read once, nothing else");
    }

    const BenchReport& report_;
    double floor_;
    Axis seconds_;
    Plot plot_;
};

struct Bar {
    std::string label, figure;
    double draft = 0, verify = 0, rest = 0;  // seconds per token

    double total() const { return draft + verify + rest; }
};

// The cost of a token that is put out, by where the time goes.
std::string cost_bars(const BenchReport& report) {
    std::vector<Bar> bars = {{"plain", "", 0, report.result.plain.median(), 0}};
    for (const CycleTimes& cycle : report.result.cycles)
        bars.push_back({"tree " + cycle.tree, "", cycle.draft.median() / cycle.tau,
                        cycle.verify.median() / cycle.tau, cycle.rest.median() / cycle.tau});
    double longest = 0;
    for (Bar& bar : bars) {
        bar.figure = duration(bar.total());
        longest = std::max(longest, bar.total());
    }
    const double height = 46 * double(bars.size()) + 40;
    std::string svg =
        format("<svg viewBox=\"0 0 900 %.0f\" role=img aria-label=\"Cost of a token\">\n", height);
    double top = 6;
    for (const Bar& bar : bars) {
        double left = 130;
        svg += format("<text class=strong text-anchor=end x=118 y=%.0f>%s</text>\n", top + 21,
                      bar.label.c_str());
        for (const auto& [kind, seconds] :
             {std::pair("draft", bar.draft), {"verify", bar.verify}, {"rest", bar.rest}}) {
            const double width = 650 * seconds / longest;
            svg += format("<rect class=%s x=%.1f y=%.0f width=%.2f height=32><title>%s: ", kind,
                          left, top, width, kind) +
                   duration(seconds) + "</title></rect>\n";
            left += width;
        }
        svg += format("<text class=strong x=%.1f y=%.0f>", left + 10, top + 21) + bar.figure +
               "</text>\n";
        top += 46;
    }
    double left = 130;
    for (const char* kind : {"draft", "verify", "rest"}) {
        svg += format(
            "<rect class=%s x=%.0f y=%.0f width=13 height=13 /><text x=%.0f y=%.0f>%s</text>\n",
            kind, left, top + 4, left + 20, top + 15, kind);
        left += 100;
    }
    return svg + "</svg>\n";
}

std::string table_row(const std::string& label, const Timings& samples, double one) {
    return "<tr><td>" + label + "<td>" + duration(samples.median()) + "<td>" +
           duration(samples.min()) + "<td>" + duration(samples.max()) +
           format("<td>%d<td>%.2f</tr>\n", samples.runs(), samples.median() / one);
}

std::string table(const BenchReport& report) {
    const BenchResult& result = report.result;
    const double one = result.plain.median();
    std::string html =
        "<figure><table><tr><th>what<th>median<th>least<th>most<th>runs<th>plain tokens</tr>\n";
    html += table_row("plain token", result.plain, one);
    for (const PassTimes& pass : result.passes)
        html += table_row(format("pass of %d row%s", pass.rows, pass.rows == 1 ? "" : "s"),
                          pass.seconds, one);
    if (result.draft_level.runs() > 0)
        html += table_row("draft level, " + report.draft_weights, result.draft_level, one);
    for (const CycleTimes& cycle : result.cycles)
        html += table_row(format("cycle, tree %s (%.1f nodes, τ %.2f)", cycle.tree.c_str(),
                                 cycle.tree_nodes, cycle.tau),
                          cycle.seconds, one);
    return html + "</table></figure>\n";
}

std::string sequences_rows(const BenchReport& report) {
    const std::vector<SequencesTimes>& all = report.result.sequences;
    const bool drafts = all.front().drafted.runs() > 0;
    std::string html = "<figure><table><tr><th>sequences<th>plain tokens/s<th>of each";
    if (drafts)
        html += "<th>" + escaped(report.head) + " tokens/s<th>of each<th>τ<th>nodes<th>× plain";
    html += "</tr>\n";
    for (const SequencesTimes& times : all) {
        const double plain = times.plain.median(), drafted = times.drafted.median();
        html +=
            format("<tr><td>%d<td>%.1f<td>%.1f", times.sequences, plain, plain / times.sequences);
        if (drafts)
            html += format("<td>%.1f<td>%.1f<td>%.2f<td>%.1f<td>%.2f (%.2f to %.2f)", drafted,
                           drafted / times.sequences, times.tau, times.tree_nodes,
                           times.speedup.median(), times.speedup.min(), times.speedup.max());
        html += "</tr>\n";
    }
    return html + "</table></figure>\n";
}

}  // namespace

std::string bench_page(const BenchReport& report) {
    std::filesystem::path model = report.name;
    if (!model.has_filename()) model = model.parent_path();
    const std::string title = escaped(model.filename().string()) + ", " + report.weights;
    std::string html = page_begin("aerie bench: " + title, kBenchStyle);
    html += "<h1>" + title + "</h1>\n<p class=soft>" + escaped(report.description) +
            format("; %s cache, %d tokens of context, %d rounds, peak memory %.0f MiB</p>\n",
                   report.kv.c_str(), report.prompt_tokens, report.result.rounds,
                   double(report.peak_memory_bytes) / (1 << 20));
    if (report.was_disturbed())
        html +=
            "<p><strong>The machine was busy: times differed by more than 30 %. Do not rely on "
            "these figures; measure again when nothing else runs.</strong></p>\n";
    html += tiles(report);
    html +=
        "<h2>A pass over many rows</h2>\n<p class=soft>Time of one target pass by the number of "
        "rows that it checks. Shaded: fastest to slowest run.</p>\n<figure>" +
        CurveChart(report).svg() + "</figure>\n";
    if (!report.result.cycles.empty())
        html +=
            "<h2>What a token costs</h2>\n<p class=soft>Time of a draft-and-verify cycle, "
            "shared among the tokens that it puts out.</p>\n<figure>" +
            cost_bars(report) + "</figure>\n";
    if (!report.result.sequences.empty())
        html +=
            format(
                "<h2>Several sequences in one pass</h2>\n<p class=soft>Tokens per second of all "
                "together, and of each. Memory has room for %d sequences of %d tokens.</p>\n",
                report.result.most_sequences, report.context) +
            sequences_rows(report);
    return html + "<h2>Figures</h2>\n" + table(report) +
           format(
               "<p class=soft>Memory here: read %.1f GB/s, copy %.1f GB/s, measured in the same "
               "rounds with the same threads.</p>\n",
               report.read_gb_per_s, report.copy_gb_per_s) +
           page_end();
}

}  // namespace aerie
