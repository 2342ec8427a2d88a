// Every coordinate is rounded to a tenth of a pixel.
#include "plot.h"

#include <algorithm>
#include <cmath>

#include "format.h"

namespace aerie {

double Axis::part(double value) const {
    const double clamped = std::clamp(value, low, high);
    if (!(low < high)) return 0.5;
    return logarithmic ? std::log(clamped / low) / std::log(high / low)
                       : (clamped - low) / (high - low);
}

Plot::Plot(Axis x, Axis y, double height, double bottom)
    : x_(x), y_(y), height_(height), base_(height - bottom) {}

double Plot::x(double value) const {
    return kLeft + x_.inset + (kRight - kLeft - 2 * x_.inset) * x_.part(value);
}

double Plot::y(double value) const {
    return base_ - y_.inset - (base_ - kTop - 2 * y_.inset) * y_.part(value);
}

void Plot::line(const char* style, double x1, double y1, double x2, double y2) {
    body_ += format("<line class=%s x1=%.1f y1=%.1f x2=%.1f y2=%.1f />\n", style, x(x1), y(y1),
                    x(x2), y(y2));
}

void Plot::curve(const char* style, const std::vector<std::pair<double, double>>& points) {
    std::string list;
    for (const auto& [px, py] : points) list += format("%.1f,%.1f ", x(px), y(py));
    body_ += format("<polyline class=\"%s\" points=\"", style) + list + "\"/>\n";
}

void Plot::dot(const char* style, double px, double py, double radius, const std::string& title) {
    body_ +=
        format("<circle class=\"%s\" cx=%.1f cy=%.1f r=%.1f><title>", style, x(px), y(py), radius) +
        title + "</title></circle>\n";
}

void Plot::grid(double value, const std::string& label) {
    body_ += format("<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f />", kLeft, kRight, y(value),
                    y(value));
    text("text-anchor=end", kLeft - 8, y(value) + 4, label);
}

void Plot::text(const char* attributes, double px, double py, const std::string& text) {
    body_ += format("<text %s x=%.1f y=%.1f>", attributes, px, py) + text + "</text>\n";
}

std::string Plot::svg(const std::string& label) const {
    return format("<svg viewBox=\"0 0 900 %.0f\" role=img aria-label=\"", height_) + label +
           "\">\n" + body_ + "</svg>\n";
}

}  // namespace aerie
