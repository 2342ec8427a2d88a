/* Tests features that differ on Windows: names of models and sessions with letters that no single
 * code page has, and replacing files that another program has open. The working folder holds the
 * model modèle-模型 and its head, modèle-模型-eagle. */
#include <aerie.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

/* The same names in UTF-8 and in the wide characters of Windows. */
#define FOLDER "mod\xC3\xA8le-\xE6\xA8\xA1\xE5\x9E\x8B"
#define TALK    \
    "s\xC3\xA9" \
    "ance-\xE4\xBC\x9A\xE8\xAF\x9D.talk"
static const wchar_t wide_folder[] = L"mod\x00E8le-\x6A21\x578B";
static const wchar_t wide_talk[] =
    L"s\x00E9"
    L"ance-\x4F1A\x8BDD.talk";

static int checks;

static void check(int holds, const char* what, const char* message) {
    ++checks;
    if (holds) return;
    printf("places: %s: %s\n", what, message);
    exit(1);
}

static long long bytes_of(const wchar_t* name) {
    WIN32_FILE_ATTRIBUTE_DATA data;
    if (!GetFileAttributesExW(name, GetFileExInfoStandard, &data)) return -1;
    return (long long)data.nFileSizeHigh << 32 | data.nFileSizeLow;
}

static int count_files(const wchar_t* pattern) {
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    int count = 0;
    if (search == INVALID_HANDLE_VALUE) return 0;
    do ++count;
    while (FindNextFileW(search, &found));
    FindClose(search);
    return count;
}

static aerie_model* open_model(aerie_context* context, const char* name) {
    aerie_model* model = NULL;
    aerie_model_options options = aerie_model_options_init();
    options.model = name;
    options.cache = "";
    options.sessions = 3;
    check(aerie_model_open(context, &options, &model) == AERIE_OK, "open",
          aerie_context_message(context));
    return model;
}

/* Returns the text of an answer, which the caller frees. The answer continues the session's text,
 * or starts a new one if the session is empty. */
static char* say(aerie_session* session, int tokens) {
    aerie_request request = aerie_request_init();
    aerie_answer answer = aerie_answer_init();
    check(aerie_session_ids(session, &request.ids, &request.id_count, NULL) == AERIE_OK, "ids",
          aerie_session_message(session));
    if (request.id_count == 0) request.ids = NULL, request.text = "Once upon a time";
    request.max_tokens = tokens;
    check(aerie_session_begin(session, &request) == AERIE_OK, "begin",
          aerie_session_message(session));
    check(aerie_session_run(session, NULL, NULL) == AERIE_OK, "run",
          aerie_session_message(session));
    check(aerie_session_answer(session, &answer) == AERIE_OK, "answer",
          aerie_session_message(session));
    check(answer.text_bytes > 10, "answer", "too short");
    return _strdup(answer.text);
}

static size_t length_of(aerie_session* session) {
    const int32_t* ids;
    size_t count = 0;
    aerie_session_ids(session, &ids, &count, NULL);
    return count;
}

static void check_names(aerie_context* context, aerie_model* model) {
    aerie_model_info info = aerie_model_info_init();
    aerie_model_options options = aerie_model_options_init();
    aerie_model* none = NULL;
    aerie_model_get_info(model, &info);
    check(strcmp(info.path, FOLDER) == 0, "path", info.path);
    check(strcmp(info.head, FOLDER "-eagle") == 0, "head", info.head);
    check(info.can_draft, "draft", info.draft);
    options.model = FOLDER "-none";
    check(aerie_model_open(context, &options, &none) == AERIE_ERROR && !none, "open",
          "what is not there");
    check(strstr(aerie_context_message(context), FOLDER "-none") != NULL, "message",
          aerie_context_message(context));
}

/* Saves a session, also over an existing file, and loads it again. */
static void check_sessions(aerie_model* model) {
    aerie_session *first = NULL, *second = NULL;
    char *said, *said_again;
    long long before;
    check(aerie_session_create(model, &first) == AERIE_OK, "create", aerie_model_message(model));
    free(say(first, 16));
    check(aerie_session_save(first, TALK) == AERIE_OK, "save", aerie_session_message(first));
    before = bytes_of(wide_talk);
    check(before > 0, "save", "no file of that name");
    free(say(first, 16));
    check(aerie_session_save(first, TALK) == AERIE_OK, "save again", aerie_session_message(first));
    check(bytes_of(wide_talk) > before, "save again", "the file is as it was");
    check(aerie_session_load(model, TALK, &second) == AERIE_OK, "load", aerie_model_message(model));
    check(length_of(second) == length_of(first), "load", "another text");
    said = say(first, 24);
    said_again = say(second, 24);
    check(strcmp(said, said_again) == 0, "load", said_again);
    free(said), free(said_again);
    aerie_session_free(first), aerie_session_free(second);
}

/* A file that another program holds open exclusively stays as it is, and no temporary file is left
 * beside it. */
static void check_held(aerie_model* model) {
    const long long before = bytes_of(wide_talk);
    aerie_session *session = NULL, *loaded = NULL;
    HANDLE held =
        CreateFileW(wide_talk, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    check(held != INVALID_HANDLE_VALUE, "hold", "cannot be opened");
    check(aerie_session_load(model, TALK, &session) == AERIE_OK, "load what is read",
          aerie_model_message(model));
    free(say(session, 8));
    check(aerie_session_save(session, TALK) == AERIE_ERROR, "save", "over what is held");
    check(strncmp(aerie_session_message(session), TALK, strlen(TALK)) == 0, "message",
          aerie_session_message(session));
    check(bytes_of(wide_talk) == before, "save", "what was held has changed");
    CloseHandle(held);
    held = CreateFileW(wide_talk, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    check(aerie_session_load(model, TALK, &loaded) == AERIE_ERROR && !loaded, "load",
          "what is held");
    check(strncmp(aerie_model_message(model), TALK, strlen(TALK)) == 0, "message",
          aerie_model_message(model));
    CloseHandle(held);
    check(aerie_session_save(session, TALK) == AERIE_OK, "save", aerie_session_message(session));
    check(bytes_of(wide_talk) > before, "save", "the file is as it was");
    check(count_files(L"s\x00E9"
                      L"ance-*") == 1,
          "save", "something is left beside the file");
    aerie_session_free(session);
}

/* One bit in the middle of the file is changed. */
static void check_damaged(aerie_model* model) {
    aerie_session* session = NULL;
    LARGE_INTEGER middle;
    DWORD moved = 0;
    char byte = 0;
    HANDLE file =
        CreateFileW(wide_talk, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    middle.QuadPart = bytes_of(wide_talk) / 2;
    check(
        SetFilePointerEx(file, middle, NULL, FILE_BEGIN) && ReadFile(file, &byte, 1, &moved, NULL),
        "damage", "read");
    byte ^= 1;
    check(
        SetFilePointerEx(file, middle, NULL, FILE_BEGIN) && WriteFile(file, &byte, 1, &moved, NULL),
        "damage", "write");
    CloseHandle(file);
    check(aerie_session_load(model, TALK, &session) == AERIE_ERROR && !session, "load",
          "what is damaged");
    check(strstr(aerie_model_message(model), "damaged") != NULL, "message",
          aerie_model_message(model));
}

int main(void) {
    aerie_context* context = NULL;
    aerie_model* model;
    check(GetFileAttributesW(wide_folder) != INVALID_FILE_ATTRIBUTES, "folder", "not here");
    check(aerie_context_create(&context) == AERIE_OK, "context", "none");
    model = open_model(context, FOLDER);
    check_names(context, model);
    check_sessions(model);
    check_held(model);
    check_damaged(model);
    aerie_model_free(model);
    aerie_context_free(context);
    printf("places: %d checks\n", checks);
    return 0;
}
