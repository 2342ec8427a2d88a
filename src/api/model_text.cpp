// Tokenization, detokenization, and conversations rendered with a model's template.
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "core/platform.h"
#include "core/utf8.h"

using namespace aerie;
using namespace aerie::api;

static_assert(std::is_same_v<int, int32_t>);

namespace aerie::api {

Conversation conversation_of(const aerie_chat_message* messages, size_t count) {
    Conversation conversation;
    Json::Array all;
    for (const aerie_chat_message& message : given_list(messages, count, "messages")) {
        const std::string role(given_text(message.role, 0, "a message's role"));
        const std::string content(given_text(message.content, 0, "a message's content"));
        if (!is_utf8(role) || !is_utf8(content)) throw UsageError("a message is not UTF-8");
        all.push_back(Json::Object{{"role", role}, {"content", content}});
    }
    conversation.messages = std::move(all);
    conversation.now = platform::local_time();
    return conversation;
}

}  // namespace aerie::api

aerie_status aerie_model_tokenize(const aerie_model* model, const char* text, size_t bytes,
                                  uint32_t flags, int32_t** ids, size_t* count) {
    return enter_to_make(model, ids, [&] {
        given(ids, "ids");
        given(count, "count");
        if (flags & ~uint32_t(AERIE_TEXT_START | AERIE_TEXT_SPECIAL))
            throw UsageError("flags that this version of the library does not know");
        const Tokenizer& tokenizer = model->model().tokenizer();
        const auto recognised = flags & AERIE_TEXT_SPECIAL ? Recognised::all : Recognised::none;
        const std::string_view all = given_text(text, bytes, "text");
        const std::vector<int> found = flags & AERIE_TEXT_START
                                           ? tokenizer.encode_from_start(all, recognised)
                                           : tokenizer.encode(all, recognised);
        *ids = to_give(std::span<const int>(found)).release();
        *count = found.size();
    });
}

aerie_status aerie_model_detokenize(const aerie_model* model, const int32_t* ids, size_t count,
                                    char** text, size_t* bytes) {
    return enter_to_make(model, text, [&] {
        given(text, "text");
        const auto list = given_list(ids, count, "ids");
        const std::string found =
            model->model().tokenizer().decode(std::vector<int>(list.begin(), list.end()));
        *text = to_give(std::string_view(found)).release();
        if (bytes) *bytes = found.size();
    });
}

aerie_status aerie_model_token_bytes(const aerie_model* model, int32_t id, const char** bytes,
                                     size_t* count) {
    return enter(model, [&] {
        given(bytes, "bytes");
        given(count, "count");
        const std::string_view found = model->model().tokenizer().bytes(id);
        *bytes = found.data();
        *count = found.size();
    });
}

aerie_status aerie_model_render(const aerie_model* model, const aerie_chat_message* messages,
                                size_t message_count, char** text, int32_t** ids,
                                size_t* id_count) {
    if (text) *text = nullptr;
    return enter_to_make(model, ids, [&] {
        if (ids) given(id_count, "id_count");
        const Tokenizer& tokenizer = model->model().tokenizer();
        const jinja::Rendered rendered =
            render_chat(tokenizer, conversation_of(messages, message_count));
        const std::vector<int> found = ids ? encode_chat(tokenizer, rendered) : std::vector<int>();
        Given<char> given_text = to_give(std::string_view(rendered.text));
        if (ids) {
            *ids = to_give(std::span<const int>(found)).release();
            *id_count = found.size();
        }
        if (text) *text = given_text.release();
    });
}
