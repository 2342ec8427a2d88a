/* Model in, text out: minimal MODEL PROMPT */
#include <aerie.h>
#include <stdio.h>

static int print_text(void* user, aerie_session* session, const aerie_step* step) {
    (void)user, (void)session;
    fputs(step->text, stdout);
    return fflush(stdout);
}

int main(int count, char** arguments) {
    aerie_context* context = NULL;
    aerie_model* model = NULL;
    aerie_session* session = NULL;
    aerie_model_options options = aerie_model_options_init();
    aerie_request request = aerie_request_init();
    aerie_status status = aerie_context_create(&context);
    options.model = count > 1 ? arguments[1] : "aerie-tiny";
    request.text = count > 2 ? arguments[2] : "Once upon a time";
    request.max_tokens = 64;

    if (!status) status = aerie_model_open(context, &options, &model);
    if (status) fprintf(stderr, "%s\n", aerie_context_message(context));
    if (!status && (status = aerie_session_create(model, &session)))
        fprintf(stderr, "%s\n", aerie_model_message(model));
    if (!status) status = aerie_session_begin(session, &request);
    if (!status) status = aerie_session_run(session, print_text, NULL);
    if (status && session) fprintf(stderr, "%s\n", aerie_session_message(session));
    puts("");
    aerie_session_free(session);
    aerie_model_free(model);
    aerie_context_free(context);
    return status;
}
