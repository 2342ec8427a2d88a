// What callers ask for, checked and as the rest of the library has it.
#pragma once

#include "api/aerie.h"
#include "engine/model_files.h"
#include "talk/talk.h"

namespace aerie::api {

// Finds the files. Throws Error, UsageError.
LoadOptions load_options(const aerie_model_options* options);

// The prompt's ids, in a talk that may hold a part of them; and how to answer. Throws Error,
// UsageError.
Request request_of(const aerie_request* asked, const Talk& talk, const SharedModel& model);

// Throws UsageError.
Conversation conversation_of(const aerie_chat_message* messages, size_t count);

}  // namespace aerie::api
