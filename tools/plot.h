// A diagram as inline SVG: maps values to pixels, and draws at them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace aerie {

struct Axis {
    double low = 0, high = 1;
    bool logarithmic = false;
    double inset = 0;  // pixels that stay free at both ends

    double part(double value) const;  // 0 at low, 1 at high; other values are clamped
};

class Plot {
  public:
    // 900 pixels wide; `bottom` pixels are left below the x axis.
    Plot(Axis x, Axis y, double height, double bottom);

    static constexpr double kLeft = 84, kRight = 872, kTop = 16;

    double x(double value) const;
    double y(double value) const;
    double base() const { return base_; }  // pixel of the x axis

    // The first four take values, `text` takes pixels; its text is HTML.
    void line(const char* style, double x1, double y1, double x2, double y2);
    void curve(const char* style, const std::vector<std::pair<double, double>>& points);
    void dot(const char* style, double x, double y, double radius, const std::string& title);
    void grid(double y, const std::string& label);  // a horizontal line
    void text(const char* attributes, double x, double y, const std::string& text);
    void add(const std::string& svg) { body_ += svg; }  // any other SVG

    std::string svg(const std::string& label) const;

  private:
    Axis x_, y_;
    double height_, base_;
    std::string body_;
};

}  // namespace aerie
