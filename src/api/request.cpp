// Converts a request for an answer.
#include <random>

#include "api/border.h"
#include "api/options.h"
#include "api/structs.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "talk/model_sampling.h"

namespace aerie::api {

namespace {

Sampling sampling_of(const aerie_request& asked, const SharedModel& model) {
    Sampling sampling;
    if (asked.sampling) {
        const aerie_sampling how = read_struct(asked.sampling, "aerie_sampling");
        sampling.filters = {how.temperature, how.top_k, how.top_p == 0 ? 1 : how.top_p, how.min_p};
        sampling.penalties = {how.repetition == 0 ? 1 : how.repetition, how.frequency,
                              how.presence};
    } else {
        sampling = model_sampling(generation_config(model.files().target));
    }
    sampling.seed = asked.has_seed ? asked.seed : std::random_device()();
    return sampling;
}

std::vector<int> prompt_of(const aerie_request& asked, const Talk& talk, const SharedModel& model) {
    const int prompts =
        bool(asked.text) + bool(asked.ids) + bool(asked.messages) + bool(asked.conversation);
    if (prompts != 1)
        throw UsageError("aerie_request: give one of text, ids, messages and conversation");
    if (asked.ids) return {asked.ids, asked.ids + asked.id_count};
    if (asked.messages) return talk.joined(conversation_of(asked.messages, asked.message_count));
    if (asked.conversation) {
        Conversation read = read_conversation(asked.conversation, "conversation");
        read.now = platform::local_time();
        return talk.joined(read);
    }
    return talk.joined(
        model.tokenizer().encode_from_start(given_text(asked.text, asked.text_bytes, "text"),
                                            asked.plain_text ? Recognised::none : Recognised::all));
}

LogitEdit edit_of(const aerie_request& asked) {
    if (!asked.edit_logits) return {};
    return [call = asked.edit_logits, user = asked.edit_user](std::span<const int> text,
                                                              std::span<float> logits) {
        if (call(user, text.data(), text.size(), logits.data(), logits.size()) != 0)
            throw Cancelled();
    };
}

// The talk outlives its answers, so the answer may refer to it.
std::function<void(int, int)> progress_of(const aerie_request& asked, Talk& talk) {
    if (!asked.prompt_progress) return {};
    return [&talk, call = asked.prompt_progress, user = asked.prompt_progress_user](int done,
                                                                                    int all) {
        if (call(user, size_t(done), size_t(all)) != 0) talk.cancel();
    };
}

std::vector<std::string> stops_of(const aerie_request& asked) {
    std::vector<std::string> stops;
    for (const char* stop : given_list(asked.stops, asked.stop_count, "stops")) {
        stops.emplace_back(given_text(stop, 0, "a stop text"));
        if (stops.back().empty() || !is_utf8(stops.back()))
            throw UsageError("aerie_request: stops: " + in_quotes(stops.back()) +
                             " is no text in UTF-8 that could be said");
    }
    return stops;
}

}  // namespace

Request request_of(const aerie_request* given_request, Talk& talk, const SharedModel& model) {
    const aerie_request asked = read_struct(given_request, "aerie_request");
    if (asked.max_tokens < 0) throw UsageError("max_tokens is negative");
    if (asked.alternatives < 0 || asked.alternatives > model.files().config.vocab)
        throw UsageError("alternatives: expected a number from 0 to the size of the vocabulary, " +
                         std::to_string(model.files().config.vocab));
    Request request;
    request.answer.sampling = sampling_of(asked, model);
    request.answer.drafts = !asked.without_drafts;
    request.answer.alternatives = asked.alternatives;
    request.answer.with_logprobs = asked.logprobs != 0 || asked.alternatives > 0;
    request.answer.edit_logits = edit_of(asked);
    request.on_read = progress_of(asked, talk);
    request.max_tokens = asked.max_tokens == 0 ? -1 : asked.max_tokens;
    if (!asked.ignore_eos) request.eos_ids = model.eos_ids();
    request.stops = stops_of(asked);
    request.prompt = prompt_of(asked, talk, model);
    return request;
}

}  // namespace aerie::api
