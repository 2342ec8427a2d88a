// The diagrams of a comparison's page, as inline SVG.
#pragma once

#include <string>

#include "compare_report.h"

namespace aerie {

extern const char* const kPlotStyle;  // CSS for these diagrams

// "first", "second", ...: the colour of a device, by its index after the reference.
const char* colour(size_t device);

std::string layer_plot(const CompareReport& report);  // carried errors from layer to layer
// The error of each op by itself, by layer; for one device.
std::string op_map(const CompareReport& report, const ComparedDevice& device);
std::string kl_plot(const CompareReport& report);  // along all prompts and answers
std::string acceptance_plot(const CompareReport& report);

}  // namespace aerie
