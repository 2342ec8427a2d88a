// The benchmark as a page: figures, the T(M) curve, what a token costs, the table. One file, inline
// SVG, no scripts.
#include <algorithm>
#include <cmath>

#include "bench_report.h"

namespace aerie {

namespace {

constexpr const char* kStyle = R"css(
:root{--paper:#fbfaf7;--ink:#1d2327;--soft:#6b7480;--line:#dfe3e6;--card:#fff;
--verify:#2f6f8f;--draft:#e0a03c;--rest:#a8b0b8;--accent:#b4472e}
@media(prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e8eaec;--soft:#95a0ab;--line:#2c343b;
--card:#1b2127;--verify:#5fa8cb;--draft:#e3b25e;--rest:#626d78;--accent:#ea8066}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0}h2{font-size:1.15rem;margin:2.6rem 0 .3rem}
p{margin:.3rem 0;max-width:46rem}.soft{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:.9rem;margin:1.6rem 0 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem}
.tile b{display:block;font-size:1.7rem;line-height:1.25;font-weight:650}
.tile span{color:var(--soft);font-size:.86rem;display:block}
figure{margin:.6rem 0 0;background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.8rem;overflow-x:auto}svg{display:block;width:100%;min-width:34rem;height:auto}
svg text{fill:var(--soft);font:13px system-ui,sans-serif}svg text.strong{fill:var(--ink)}
.grid{stroke:var(--line)}.curve{fill:none;stroke:var(--verify);stroke-width:2.5}
.dot{fill:var(--verify)}.spread{stroke:var(--verify);stroke-width:6;opacity:.25;stroke-linecap:round}
.reference{fill:none;stroke:var(--accent);stroke-width:1.5;stroke-dasharray:5 5}
.floor{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-dasharray:2 4}
.verify{fill:var(--verify)}.draft{fill:var(--draft)}.rest{fill:var(--rest)}
text.accent{fill:var(--accent)!important}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.34rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500;font-size:.86rem}th:first-child,td:first-child{text-align:left;white-space:normal}
)css";

std::string escaped(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '&')
            result += "&amp;";
        else
            result += c;
    }
    return result;
}

// A number with three digits that count.
std::string short_number(double value) {
    return format(value >= 1000 ? "%.0f" : "%.3g", value);
}

// "1.23 s", "45.6 ms" or "789 µs".
std::string duration(double seconds) {
    if (seconds >= 1) return short_number(seconds) + " s";
    return seconds >= 1e-3 ? short_number(seconds * 1e3) + " ms"
                           : short_number(seconds * 1e6) + " µs";
}

std::string tile(const std::string& figure, const std::string& what) {
    return "<div class=tile><b>" + figure + "</b><span>" + what + "</span></div>\n";
}

std::string tiles(const BenchReport& report) {
    std::string html = "<div class=tiles>\n";
    html += tile(short_number(report.plain_tokens_per_second) + " tok/s", "plain decoding");
    for (const CycleTimes& cycle : report.result.cycles)
        html += tile(short_number(cycle.speedup.median()) + " ×",
                     format("EAGLE-2, tree %s: %s tok/s at τ = %.2f%s", cycle.tree.c_str(),
                            short_number(report.tokens_per_second(cycle)).c_str(), cycle.tau,
                            report.tau_is_rescaled ? " (rescaled)" : ""));
    html += tile(format("%.0f %%", 100 * report.result.read_share.median()),
                 format("of the read bandwidth: plain decoding streams %.1f of %.1f GB/s",
                        report.streamed_gb_per_s, report.read_gb_per_s));
    html += tile(short_number(report.prefill_tokens_per_second) + " tok/s",
                 format("prefill of %d tokens", report.prompt_tokens));
    return html + "</div>\n";
}

// Milliseconds a pass over rows a pass, both logarithmic.
class CurveChart {
  public:
    explicit CurveChart(const BenchReport& report) : report_(report) {
        low_ = high_ = report.result.plain.median();
        for (const PassTimes& pass : report.result.passes) {
            most_rows_ = std::max(most_rows_, pass.rows);
            low_ = std::min(low_, pass.seconds.min());
            high_ = std::max(high_, pass.seconds.max());
        }
        floor_ = double(report.pass_bytes) / (report.read_gb_per_s * 1e9);
        low_ = std::min(low_, floor_) / 1.25;
        high_ *= 1.25;
    }

    std::string svg() const {
        std::string text = "<svg viewBox=\"0 0 900 400\" role=img aria-label=\"Time of a pass\">\n";
        text += axes() + reference_lines();
        std::string points;
        for (const PassTimes& pass : report_.result.passes) {
            const double px = x(pass.rows), py = y(pass.seconds.median());
            text += format("<line class=spread x1=%.1f x2=%.1f y1=%.1f y2=%.1f />\n", px, px,
                           y(pass.seconds.min()), y(pass.seconds.max()));
            points += format("%.1f,%.1f ", px, py);
        }
        text += "<polyline class=curve points=\"" + points + "\"/>\n";
        for (const PassTimes& pass : report_.result.passes) {
            const double px = x(pass.rows), py = y(pass.seconds.median());
            text += format("<circle class=dot cx=%.1f cy=%.1f r=4.5><title>%d rows: ", px, py,
                           pass.rows) +
                    duration(pass.seconds.median()) + "</title></circle>\n";
            const bool below = y(floor_) - py > 44;  // the line of rows x a token is above
            if (!crowded(pass))
                text += format("<text class=strong text-anchor=middle x=%.1f y=%.1f>", px,
                               below ? py + 24 : py - 13) +
                        duration(pass.seconds.median()) + "</text>\n";
        }
        return text + "</svg>\n";
    }

  private:
    static constexpr double kLeft = 84, kRight = 872, kTop = 16, kBottom = 348;

    double x(double rows) const {
        return kLeft + 30 +
               (kRight - kLeft - 60) * std::log(rows) / std::log(std::max(most_rows_, 2));
    }
    double y(double seconds) const {
        return kBottom - (kBottom - kTop) * std::log(std::clamp(seconds, low_, high_) / low_) /
                             std::log(high_ / low_);
    }
    // A label of the next point would stand on this one.
    bool crowded(const PassTimes& pass) const {
        for (const PassTimes& other : report_.result.passes)
            if (other.rows > pass.rows && x(other.rows) - x(pass.rows) < 40) return true;
        return false;
    }

    std::string axes() const {
        std::string text;
        for (double decade = 1e-7; decade < 1e3; decade *= 10)
            for (const int step : {1, 2, 5}) {
                const double seconds = decade * step;
                if (seconds < low_ || seconds > high_) continue;
                text += format(
                    "<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f /><text text-anchor=end "
                    "x=%.0f y=%.1f>",
                    kLeft, kRight, y(seconds), y(seconds), kLeft - 8, y(seconds) + 4);
                text += duration(seconds) + "</text>\n";
            }
        for (const PassTimes& pass : report_.result.passes)
            if (!crowded(pass))
                text += format("<text text-anchor=middle x=%.1f y=%.0f>%d</text>\n", x(pass.rows),
                               kBottom + 22, pass.rows);
        return text + format("<text text-anchor=middle x=%.0f y=%.0f>rows in one pass</text>\n",
                             (kLeft + kRight) / 2, kBottom + 44);
    }

    // Without sharing each row would cost a pass of its own; with one read of the weights at the
    // read bandwidth, and no arithmetic, none would cost more than the first.
    std::string reference_lines() const {
        const double one = report_.result.plain.median();
        const double end = std::min<double>(most_rows_, high_ / one);
        std::string text = format("<line class=reference x1=%.1f y1=%.1f x2=%.1f y2=%.1f />\n",
                                  x(1), y(one), x(end), y(one * end)) +
                           format("<line class=floor x1=%.1f y1=%.1f x2=%.1f y2=%.1f />\n", x(1),
                                  y(floor_), x(most_rows_), y(floor_));
        text +=
            format("<text class=accent text-anchor=end x=%.1f y=%.1f>rows × a plain token</text>\n",
                   x(std::sqrt(end)) - 12, y(one * std::sqrt(end)) - 8);
        return text +
               format(
                   "<text text-anchor=end x=%.1f y=%.1f>weights read once, nothing else</text>\n",
                   x(most_rows_), y(floor_) - 7);
    }

    const BenchReport& report_;
    int most_rows_ = 1;
    double low_ = 0, high_ = 0, floor_ = 0;
};

struct Bar {
    std::string label, figure;
    double draft = 0, verify = 0, rest = 0;  // seconds a token

    double total() const { return draft + verify + rest; }
};

// What a token that is put out costs, by where the time goes.
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

std::string table_row(const std::string& label, const Samples& samples, double one) {
    return "<tr><td>" + label + "<td>" + duration(samples.median()) + "<td>" +
           duration(samples.min()) + "<td>" + duration(samples.max()) +
           format("<td>%d<td>%.2f</tr>\n", samples.runs(), samples.median() / one);
}

std::string table(const BenchReport& report) {
    const BenchResult& result = report.result;
    const double one = result.plain.median();
    std::string html =
        "<figure><table><tr><th><th>median<th>least<th>most<th>runs<th>plain tokens</tr>\n";
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

}  // namespace

std::string bench_page(const BenchReport& report) {
    const std::string title = escaped(report.name) + ", " + report.weights;
    std::string html =
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<meta name=viewport "
        "content=\"width=device-width\">\n<title>aerie bench: " +
        title + "</title>\n<style>" + kStyle + "</style>\n<main>\n";
    html += "<h1>" + title + "</h1>\n<p class=soft>" + escaped(report.description) +
            format("; %s cache, %d tokens of context, %d rounds, peak memory %.0f MiB</p>\n",
                   report.kv.c_str(), report.prompt_tokens, report.result.rounds,
                   double(report.peak_memory_bytes) / (1 << 20));
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
    return html + "<h2>Figures</h2>\n" + table(report) +
           format(
               "<p class=soft>Memory here: read %.1f GB/s, copy %.1f GB/s, measured in the same "
               "rounds with the same threads.</p>\n</main></html>\n",
               report.read_gb_per_s, report.copy_gb_per_s);
}

}  // namespace aerie
