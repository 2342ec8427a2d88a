#include "train/model_card.h"

#include <cstdio>

namespace aerie::train {

namespace {

std::string format(const char* pattern, double value) {
    char text[64];
    std::snprintf(text, sizeof(text), pattern, value);
    return text;
}

std::string names_of(const std::vector<std::filesystem::path>& files) {
    std::string names;
    for (const std::filesystem::path& file : files)
        names += (names.empty() ? "" : ", ") + file.filename().string();
    return names;
}

// A name that does not end the cell of a table.
std::string in_cell(std::string name) {
    for (char& c : name)
        if (c == '|' || c == '\n' || c == '\r') c = ' ';
    return name;
}

std::string agreement_row(const std::string& name, const Evaluation& evaluation) {
    std::string row = "| " + in_cell(name) + " | " + format("%.2f", evaluation.expected_tau());
    for (const double share : evaluation.agreement) row += " | " + format("%.0f %%", 100 * share);
    return row + " |\n";
}

}  // namespace

std::string model_card(const std::string& head, const std::string& model,
                       const TrainingOptions& options, const TrainingReport& report) {
    const std::string kind = options.is_eagle2 ? "EAGLE-2" : "EAGLE-3";
    std::string card =
        "# " + head + "\n\nAn " + kind + " draft head for " + model +
        ", trained by `aerie train`. It changes the speed of the model and not one token "
        "of its text:\n\n    aerie generate -m " +
        model + " --head \"" + head + "\" --chat -p \"Why is the sky blue?\"\n\n";
    card += "## Training\n\n";
    if (!options.prompts.empty())
        card += "- Prompts of " + names_of(options.prompts) + ", answered by the model itself.\n";
    if (options.prompts.empty() && options.texts.empty())
        card += "- The texts that were gathered when the training began.\n";
    if (!options.texts.empty())
        card += "- Texts of " + names_of(options.texts) + ", as they are.\n";
    card += "- " + std::to_string(report.texts) + " texts of " +
            std::to_string(report.text_tokens) + " tokens; " + std::to_string(report.held_out) +
            " more were held out.\n- " + std::to_string(report.steps) + " steps over " +
            std::to_string(report.tokens) + " tokens in " + format("%.1f", report.seconds / 3600) +
            " hours; the head is that of step " + std::to_string(report.best_step) + ".\n";
    card +=
        "\n## On texts that were held out\n\n"
        "Agreement is how often the head's likeliest token is the target's, by depth; tau is what "
        "a "
        "drafted chain then makes of a pass, in tokens.\n\n| texts | tau |";
    for (size_t d = 0; d < report.best.agreement.size(); ++d)
        card += " depth " + std::to_string(d + 1) + " |";
    card += "\n|---|---|";
    for (size_t d = 0; d < report.best.agreement.size(); ++d) card += "---|";
    card += "\n" + agreement_row("**all**", report.best);
    for (const auto& [name, evaluation] : report.by_kind) card += agreement_row(name, evaluation);
    card +=
        "\n## Limits\n\nThe head drafts for this model alone. For other fine-tunes, languages and "
        "topics than those of "
        "its texts it drafts worse, and then the model is slower, never different. `aerie train "
        "--init` "
        "adapts it.\n";
    return card;
}

}  // namespace aerie::train
