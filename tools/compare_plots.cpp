// Errors are drawn on a logarithmic axis; values with the same bits lie on its lowest line.
#include "compare_plots.h"

#include <algorithm>
#include <cmath>

#include "format.h"
#include "page.h"
#include "plot.h"

namespace aerie {

const char* const kPlotStyle = R"css(
.c-first{stroke:var(--first)}.c-second{stroke:var(--second)}.c-third{stroke:var(--third)}
.c-fourth{stroke:var(--fourth)}
.f-first{fill:var(--first)}.f-second{fill:var(--second)}.f-third{fill:var(--third)}
.f-fourth{fill:var(--fourth)}.f-rest{fill:var(--rest)}
.curve.thin{stroke-width:1.4}.curve.faint{stroke-width:1.2;stroke-dasharray:2 3}
.ring{fill:none;stroke:var(--accent);stroke-width:2}
.prompt{fill:var(--rest);opacity:.16}
.cell{stroke:var(--card);stroke-width:1.5}
.same{fill:var(--third);opacity:.45}.within{fill:var(--second)}.beyond{fill:var(--accent)}
)css";

namespace {

constexpr const char* kColours[] = {"first", "second", "third", "fourth"};

// A logarithmic axis for errors, some of which may be 0: those lie on its lowest line.
class ErrorAxis {
  public:
    void include(double value) {
        if (!(value > 0) || std::isinf(value)) return;
        least_ = std::min(least_, value);
        most_ = std::max(most_, value);
    }
    Axis axis() const { return {std::pow(10, low()), std::pow(10, high()), true, 0}; }
    double clamped(double value) const {
        return std::isnan(value) ? axis().high : std::max(value, axis().low);
    }
    void draw(Plot& plot) const {
        const int step = (high() - low() + 6) / 7;
        plot.grid(axis().low, "0");
        for (int power = high(); power > low(); power -= step)
            plot.grid(std::pow(10, power), format("1e%d", power));
    }

  private:
    int high() const { return int(std::ceil(std::log10(std::max(most_, 1e-12)))); }
    int low() const {
        const int least = int(std::floor(std::log10(std::max(least_, 1e-16))));
        return std::min(least - 1, high() - 3);
    }

    double least_ = 1, most_ = 0;
};

std::string class_of(const char* kind, size_t device, const char* more = "") {
    return std::string(kind) + colour(device) + more;
}

// Names of the devices in their colours, in a row at this height.
std::string legend(const CompareReport& report, size_t first, double top) {
    std::string svg;
    double left = Plot::kLeft;
    for (size_t i = first; i < report.comparison.devices.size(); ++i) {
        const std::string& name = report.comparison.devices[i].name;
        svg += format("<rect class=f-%s x=%.0f y=%.0f width=13 height=13 />",
                      i == 0 ? "rest" : colour(i), left, top) +
               format("<text x=%.0f y=%.0f>", left + 20, top + 11) + escaped(name) + "</text>\n";
        left += 50 + 8 * double(name.size());
    }
    return svg;
}

std::string rectangle(const std::string& style, double left, double top, double width,
                      double height, const std::string& title, double opacity = 1) {
    return "<rect class=\"" + style +
           format("\" fill-opacity=%.2f x=%.1f y=%.1f width=%.1f height=%.1f><title>", opacity,
                  left, top, width, height) +
           escaped(title) + "</title></rect>\n";
}

std::string op_cell(const ComparedOp& op, double limit, double left, double top, double width,
                    double height) {
    const double error = op.alone.relative();
    const std::string title =
        to_string(op.place) + ": " + scientific(error) + " alone, " +
        scientific(op.carried.relative()) + " carried, " +
        format("%.1f %% of values with the same bits",
               100.0 * double(op.alone.equal) / double(std::max<int64_t>(op.alone.values, 1)));
    std::string style = "cell same";
    double strength = 1;
    if (!(error <= limit)) {
        style = "cell beyond";
    } else if (!op.alone.identical()) {
        style = "cell within";  // from a tenth, at a ten-thousandth of the limit, to full
        strength = std::clamp(1 + std::log10(std::max(error, 1e-30) / limit) / 4, 0.12, 1.0);
    }
    return rectangle(style, left, top, width, height, title, strength);
}

std::string map_legend(double limit, double top) {
    std::string svg;
    double left = 150;
    const auto box = [&](const char* style, double opacity, const std::string& label) {
        svg += format(
                   "<rect class=\"cell %s\" fill-opacity=%.2f x=%.0f y=%.0f width=18 "
                   "height=14 /><text x=%.0f y=%.0f>",
                   style, opacity, left, top, left + 25, top + 12) +
               label + "</text>\n";
        left += 50 + 7.5 * double(label.size());
    };
    box("same", 1, "same bits");
    box("within", 0.25, scientific(limit / 1000));
    box("within", 0.5, scientific(limit / 100));
    box("within", 0.75, scientific(limit / 10));
    box("within", 1, "limit " + scientific(limit));
    box("beyond", 1, "beyond");
    return svg;
}

struct KlPoint {
    double x;
    const ComparedPosition* position;
};

// Positions of one prompt on one device, counted over all prompts.
std::vector<KlPoint> kl_points(const ComparedText& text, int begin) {
    std::vector<KlPoint> points;
    for (size_t i = 0; i < text.positions.size(); ++i)
        points.push_back({double(begin) + double(i), &text.positions[i]});
    return points;
}

}  // namespace

const char* colour(size_t device) {
    return kColours[(device - 1) % std::size(kColours)];
}

std::string layer_plot(const CompareReport& report) {
    const std::vector<LayerSummary> first = summarise_layers(report.comparison.devices[1]);
    ErrorAxis errors;
    errors.include(3 * report.verdict.tolerance.state);  // room for its label
    for (size_t i = 1; i < report.comparison.devices.size(); ++i)
        for (const LayerSummary& layer : summarise_layers(report.comparison.devices[i])) {
            errors.include(layer.last->carried.relative());
            errors.include(layer.last->carried.worst_row);
        }
    Plot plot({0, double(first.size() - 1), false, 40}, errors.axis(), 400, 78);
    errors.draw(plot);
    const size_t step = first.size() / 14 + 1;  // labels that have room
    for (size_t i = 0; i < first.size(); ++i) {
        const bool outside = first[i].last->place.layer < 0;
        if (outside || size_t(first[i].last->place.layer) % step == 0)
            plot.text("text-anchor=middle", plot.x(double(i)),
                      plot.base() + (outside && i > 0 && i % 2 ? 36 : 20),
                      outside ? first[i].name : std::to_string(first[i].last->place.layer));
    }
    plot.line("reference", 0, report.verdict.tolerance.state, double(first.size() - 1),
              report.verdict.tolerance.state);
    plot.text("class=accent", plot.x(0), plot.y(report.verdict.tolerance.state) - 8,
              "limit of the final state");
    for (size_t i = 1; i < report.comparison.devices.size(); ++i) {
        std::vector<std::pair<double, double>> mean, worst;
        for (const LayerSummary& layer : summarise_layers(report.comparison.devices[i])) {
            const double x = double(mean.size());
            mean.emplace_back(x, errors.clamped(layer.last->carried.relative()));
            worst.emplace_back(x, errors.clamped(layer.last->carried.worst_row));
        }
        plot.curve(class_of("curve faint c-", i).c_str(), worst);
        plot.curve(class_of("curve c-", i).c_str(), mean);
        for (const auto& [x, y] : mean)
            plot.dot(class_of("f-", i).c_str(), x, y, 4,
                     first[std::min(size_t(x), first.size() - 1)].name + ": " +
                         (y <= errors.axis().low ? "0" : scientific(y)));
    }
    plot.add(legend(report, 1, plot.base() + 54));
    return plot.svg("Error of the hidden state by layer");
}

std::string op_map(const CompareReport& report, const ComparedDevice& device) {
    constexpr double kTop = 8, kHeight = 26, kLeft = 150, kWidth = 722;
    const double limit = report.verdict.tolerance.op;
    std::vector<std::string> names;
    int layers = 0;
    std::vector<const ComparedOp*> outside;
    for (const ComparedOp& op : device.ops) {
        if (op.place.layer < 0) outside.push_back(&op);
        if (op.place.layer == 0) names.push_back(op.place.name);
        layers = std::max(layers, op.place.layer + 1);
    }
    std::string body;
    const double width = kWidth / std::max(layers, 1);
    for (size_t row = 0; row < names.size(); ++row)
        body += format("<text text-anchor=end x=%.0f y=%.0f>", kLeft - 10,
                       kTop + kHeight * double(row) + 18) +
                names[row] + "</text>\n";
    for (const ComparedOp& op : device.ops) {
        const auto row = std::find(names.begin(), names.end(), op.place.name) - names.begin();
        if (op.place.layer >= 0)
            body += op_cell(op, limit, kLeft + width * op.place.layer, kTop + kHeight * double(row),
                            width, kHeight);
    }
    double top = kTop + kHeight * double(names.size()) + 18;
    for (int layer = 0; layer < layers; layer += layers / 17 + 1)
        body += format("<text text-anchor=middle x=%.1f y=%.0f>%d</text>\n",
                       kLeft + width * (layer + 0.5), top, layer);
    body += format("<text text-anchor=end x=%.0f y=%.0f>layer</text>\n", kLeft - 10, top);
    top += 16;
    const double share = kWidth / double(std::max<size_t>(outside.size(), 1));
    for (size_t i = 0; i < outside.size(); ++i) {
        const double left = kLeft + share * double(i);
        body += op_cell(*outside[i], limit, left, top, share, kHeight) +
                format("<text class=strong text-anchor=middle pointer-events=none x=%.1f y=%.0f>",
                       left + share / 2, top + 18) +
                outside[i]->place.name + "</text>\n";
    }
    top += kHeight + 20;
    body += map_legend(limit, top);
    return format("<svg viewBox=\"0 0 900 %.0f\" role=img aria-label=\"Error of each op\">\n",
                  top + 22) +
           body + "</svg>\n";
}

std::string kl_plot(const CompareReport& report) {
    const std::vector<ComparedDevice>& devices = report.comparison.devices;
    ErrorAxis errors;
    errors.include(3 * report.verdict.tolerance.kl_most);
    for (size_t i = 1; i < devices.size(); ++i)
        for (const ComparedText& text : devices[i].texts)
            for (const ComparedPosition& position : text.positions) errors.include(position.kl);
    std::vector<int> begins = {0};
    for (const ComparedText& text : devices[1].texts)
        begins.push_back(begins.back() + int(text.positions.size()));
    Plot plot({0, double(std::max(begins.back() - 1, 1)), false, 6}, errors.axis(), 380, 74);
    for (size_t prompt = 0; prompt + 1 < begins.size(); ++prompt) {
        const double left = plot.x(begins[prompt]),
                     right = plot.x(begins[prompt] +
                                    double(report.comparison.prompts[prompt].size()) - 1);
        plot.add(rectangle("prompt", left, Plot::kTop, right - left, plot.base() - Plot::kTop,
                           format("prompt %zu", prompt + 1)));
        if (plot.x(begins[prompt + 1] - 1) - left > 60)
            plot.text("", left, plot.base() + 20, format("prompt %zu", prompt + 1));
    }
    errors.draw(plot);
    plot.line("reference", 0, report.verdict.tolerance.kl_most, begins.back(),
              report.verdict.tolerance.kl_most);
    plot.text("class=accent", plot.x(0), plot.y(report.verdict.tolerance.kl_most) - 8, "limit");
    for (size_t i = 1; i < devices.size(); ++i)
        for (size_t prompt = 0; prompt < devices[i].texts.size(); ++prompt) {
            std::vector<std::pair<double, double>> points;
            for (const KlPoint& point : kl_points(devices[i].texts[prompt], begins[prompt])) {
                points.emplace_back(point.x, errors.clamped(point.position->kl));
                if (point.position->margin != 0)
                    plot.dot("ring", point.x, points.back().second, 5,
                             "another token; the reference prefers its own by " +
                                 scientific(point.position->margin));
            }
            plot.curve(class_of("curve thin c-", i).c_str(), points);
        }
    plot.add(legend(report, 1, plot.base() + 46));
    return plot.svg("Divergence along the text");
}

std::string acceptance_plot(const CompareReport& report) {
    const std::vector<ComparedDevice>& devices = report.comparison.devices;
    size_t depths = 1;
    for (const ComparedDevice& device : devices)
        depths = std::max(depths, acceptance(device).by_depth.size());
    Plot plot({0, double(depths), false, 0}, {0, 1, false, 0}, 300, 74);
    for (const int percent : {0, 25, 50, 75, 100})
        plot.grid(percent / 100.0, format("%d %%", percent));
    const double group = plot.x(1) - plot.x(0), width = 0.7 * group / double(devices.size());
    for (size_t depth = 0; depth < depths; ++depth)
        for (size_t i = 0; i < devices.size(); ++i) {
            const Acceptance sum = acceptance(devices[i]);
            const double share = depth < sum.by_depth.size()
                                     ? double(sum.by_depth[depth]) / std::max(sum.cycles, 1)
                                     : 0;
            plot.add(rectangle(i == 0 ? "f-rest" : class_of("f-", i),
                               plot.x(double(depth)) + 0.15 * group + width * double(i),
                               plot.y(share), width - 2, plot.base() - plot.y(share),
                               devices[i].name + format(": %.1f %%", 100 * share)));
        }
    for (size_t depth = 0; depth < depths; ++depth)
        plot.text("text-anchor=middle", plot.x(double(depth) + 0.5), plot.base() + 20,
                  format("%zu", depth + 1));
    plot.add(legend(report, 0, plot.base() + 46));
    return plot.svg("Acceptance by depth");
}

}  // namespace aerie
