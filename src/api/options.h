// Converts options and requests of the C header to those of the library, and checks them.
#pragma once

#include "api/aerie.h"
#include "engine/model_files.h"
#include "talk/talk.h"

namespace aerie::api {

// Also finds the files. Throws Error, UsageError.
LoadOptions load_options(const aerie_model_options* options);

// Converts a request. Its prompt becomes ids, which agree with the ids of the talk as far as the
// texts agree. The request refers to the talk, which a progress callback may cancel. Throws Error,
// UsageError.
Request request_of(const aerie_request* asked, Talk& talk, const SharedModel& model);

// Throws UsageError.
Conversation conversation_of(const aerie_chat_message* messages, size_t count);

}  // namespace aerie::api
