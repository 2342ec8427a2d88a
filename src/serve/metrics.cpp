#include "serve/metrics.h"

#include <algorithm>
#include <charconv>

namespace aerie {

namespace {

std::string number(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

std::string number(uint64_t value) {
    return std::to_string(value);
}

// Collects the text of the page, metric by metric.
class Lines {
  public:
    void begin(const std::string& name, const std::string& type, const std::string& help) {
        name_ = "aerie_" + name;
        text += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
    }
    void add(const std::string& value, const std::string& labels = "",
             const std::string& ending = "") {
        text += name_ + ending + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
    }
    void one(const std::string& name, const std::string& type, const std::string& help,
             const std::string& value) {
        begin(name, type, help);
        add(value);
    }

    std::string text;

  private:
    std::string name_;
};

}  // namespace

void Metrics::count_request(const std::string& path, int status) {
    const std::lock_guard lock(mutex_);
    ++requests_[{path, status}];
}

void Metrics::count_answer(const GenerationResult& result, int prompt_tokens, bool is_first) {
    const std::lock_guard lock(mutex_);
    const Stats& stats = result.stats;
    ++answers_;
    if (is_first) {
        prompt_tokens_ += uint64_t(prompt_tokens);
        reused_tokens_ += uint64_t(result.reused);
        prefix_hits_ += result.reused > 0;
    }
    tokens_ += result.ids.size();
    cycles_ += uint64_t(stats.cycles);
    cycle_tokens_ += uint64_t(stats.cycle_tokens);
    if (accepted_by_depth_.size() < stats.accepted_by_depth.size())
        accepted_by_depth_.resize(stats.accepted_by_depth.size());
    for (size_t depth = 0; depth < stats.accepted_by_depth.size(); ++depth)
        accepted_by_depth_[depth] += uint64_t(stats.accepted_by_depth[depth]);
}

void Metrics::add_first_token(double seconds) {
    const std::lock_guard lock(mutex_);
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++first_tokens_[size_t(bound - kBounds.begin())];
    first_token_seconds_ += seconds;
}

void Metrics::count_cancelled() {
    const std::lock_guard lock(mutex_);
    ++cancelled_;
}

std::string Metrics::text(const Now& now, const PassCounts& passes) const {
    const std::lock_guard lock(mutex_);
    Lines lines;
    lines.begin("requests_total", "counter", "Requests by path and status");
    for (const auto& [key, count] : requests_)
        lines.add(number(count),
                  "path=\"" + key.first + "\",status=\"" + std::to_string(key.second) + "\"");
    const auto gauge = [&](const char* name, const char* help, int value) {
        lines.one(name, "gauge", help, number(uint64_t(std::max(0, value))));
    };
    const auto counter = [&](const char* name, const char* help, uint64_t value) {
        lines.one(name, "counter", help, number(value));
    };
    gauge("requests_running", "Requests that have begun", now.running);
    gauge("requests_waiting", "Requests in the queue", now.waiting);
    gauge("connections", "Open connections", now.connections);
    counter("connections_failed_total", "Connections that were closed for a fault of the server",
            uint64_t(now.failed_connections));
    gauge("talks_kept", "Finished conversations whose prefix can be used again", now.kept);
    gauge("kv_pages", "Pages of the KV cache, 64 positions each", now.pages);
    gauge("kv_pages_used", "Pages that texts hold, each counted once", now.used_pages);
    counter("passes_total", "Passes of the model", passes.passes);
    counter("pass_rows_total", "Rows of these passes: drafted tokens and parts of prompts",
            passes.rows);
    counter("pass_answers_total", "Answers that took part, summed over the passes",
            passes.sequences);
    counter("pass_tokens_total", "Tokens that the passes put out", passes.tokens);
    counter("answers_total", "Answers, each of n choices", answers_);
    counter("answers_cancelled_total", "Answers whose client went away", cancelled_);
    counter("prompt_tokens_total", "Tokens of prompts", prompt_tokens_);
    counter("prompt_tokens_reused_total", "Of them those that were not run again", reused_tokens_);
    counter("prefix_hits_total", "Answers that began with tokens of a held one", prefix_hits_);
    counter("generated_tokens_total", "Tokens of answers", tokens_);
    counter("cycles_total", "Draft-and-verify cycles", cycles_);
    counter("cycle_tokens_total", "Tokens that cycles put out", cycle_tokens_);
    lines.one("tau", "gauge", "Tokens per cycle so far",
              number(cycles_ ? double(cycle_tokens_) / double(cycles_) : 0.0));
    lines.begin("accepted_total", "counter",
                "Cycles that put out a drafted token of at least this depth");
    for (size_t depth = 0; depth < accepted_by_depth_.size(); ++depth)
        lines.add(number(accepted_by_depth_[depth]), "depth=\"" + std::to_string(depth + 1) + "\"");
    lines.begin("time_to_first_token_seconds", "histogram",
                "From a request's last byte to its first token");
    uint64_t below = 0;
    for (size_t i = 0; i < first_tokens_.size(); ++i) {
        below += first_tokens_[i];
        const std::string bound = i < kBounds.size() ? number(kBounds[i]) : "+Inf";
        lines.add(number(below), "le=\"" + bound + "\"", "_bucket");
    }
    lines.add(number(first_token_seconds_), "", "_sum");
    lines.add(number(below), "", "_count");
    return lines.text;
}

}  // namespace aerie
