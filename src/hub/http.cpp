#include "hub/http.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <exception>
#include <memory>

#include "core/ascii.h"
#include "core/clock.h"

namespace aerie::hub {

namespace {

constexpr size_t kMostText = 16 << 20;
constexpr double kSilentSeconds = 5;
constexpr long kMostRedirections = 10, kConnectSeconds = 30, kStalledSeconds = 60;

// The functions of libcurl. It is loaded with the first request, for with all that it needs it
// would add 5 MB to every run of the program.
struct Curl {
    // Throws Error where there is no libcurl.
    Curl() {
        void* library = nullptr;
        for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
            if (!library) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) throw Error("downloads need libcurl, which is not installed (libcurl4)");
        find(library, start, "curl_global_init");
        find(library, init, "curl_easy_init");
        find(library, reset, "curl_easy_reset");
        find(library, cleanup, "curl_easy_cleanup");
        find(library, set_option, "curl_easy_setopt");
        find(library, perform, "curl_easy_perform");
        find(library, info, "curl_easy_getinfo");
        find(library, text_of, "curl_easy_strerror");
        find(library, append, "curl_slist_append");
        find(library, free_list, "curl_slist_free_all");
        if (start(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Error("libcurl cannot start");
    }

    CURLcode (*start)(long flags);
    CURL* (*init)();
    void (*reset)(CURL*);
    void (*cleanup)(CURL*);
    CURLcode (*set_option)(CURL*, CURLoption, ...);
    CURLcode (*perform)(CURL*);
    CURLcode (*info)(CURL*, CURLINFO, ...);
    const char* (*text_of)(CURLcode);
    curl_slist* (*append)(curl_slist*, const char*);
    void (*free_list)(curl_slist*);

  private:
    template <class Function>
    static void find(void* library, Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(library, name));
        if (!function) throw Error(std::string("libcurl lacks ") + name);
    }
};

const Curl& libcurl() {
    static const Curl loaded;
    return loaded;
}

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
    if (const CURLcode code = libcurl().set_option(curl, option, value); code != CURLE_OK)
        throw Error(std::string("libcurl: ") + libcurl().text_of(code));
}

// Only HTTP and HTTPS, whatever a redirection says, and no way from HTTPS to HTTP.
void set_protocols(CURL* curl, bool is_secure) {
#if LIBCURL_VERSION_NUM >= 0x075500
    set(curl, CURLOPT_PROTOCOLS_STR, is_secure ? "https" : "http,https");
    set(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
#else
    const long protocols = is_secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS;
    set(curl, CURLOPT_PROTOCOLS, protocols);
    set(curl, CURLOPT_REDIR_PROTOCOLS, protocols);
#endif
}

std::string trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const size_t first = text.find_first_not_of(kSpace);
    if (first == text.npos) return "";
    return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

}  // namespace

// The state that the callbacks of one request share. No exception may pass through libcurl.
struct HttpClient::Transfer {
    CURL* curl;
    const std::string& url;
    const Take& take;
    const std::function<void()>& on_silence;
    Clock clock = steady_seconds;
    double last_byte = clock();
    bool was_silent = false;
    Reply reply = {};
    std::exception_ptr failure = nullptr;

    static size_t on_header(char* data, size_t size, size_t count, void* self) {
        Transfer& transfer = *static_cast<Transfer*>(self);
        transfer.last_byte = transfer.clock();
        const std::string_view line(data, size * count);
        try {
            if (line.starts_with("HTTP/")) transfer.reply.headers.clear();
            if (const size_t colon = line.find(':'); colon != line.npos)
                transfer.reply.headers[lower_ascii(std::string(line.substr(0, colon)))] =
                    trimmed(line.substr(colon + 1));
        } catch (...) {
            transfer.failure = std::current_exception();
            return 0;
        }
        return size * count;
    }

    static size_t on_body(char* data, size_t size, size_t count, void* self) {
        Transfer& transfer = *static_cast<Transfer*>(self);
        const std::string_view piece(data, size * count);
        try {
            transfer.last_byte = transfer.clock();
            long& status = transfer.reply.status;
            libcurl().info(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
            if (transfer.take && (status == 200 || status == 206))
                transfer.take(transfer.reply, piece);
            else if (transfer.reply.text.size() + piece.size() <= kMostText)
                transfer.reply.text += piece;
            else
                throw Error(transfer.url + ": the answer is longer than 16 MiB");
        } catch (...) {
            transfer.failure = std::current_exception();
            return 0;
        }
        return size * count;
    }

    // libcurl calls it about once a second.
    static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        Transfer& transfer = *static_cast<Transfer*>(self);
        if (transfer.was_silent || transfer.clock() - transfer.last_byte < kSilentSeconds) return 0;
        transfer.was_silent = true;
        try {
            if (transfer.on_silence) transfer.on_silence();
        } catch (...) {
            transfer.failure = std::current_exception();
            return 1;
        }
        return 0;
    }
};

HttpClient::HttpClient(std::string token) : token_(std::move(token)) {
    for (const unsigned char c : token_)
        if (c < 0x21 || c > 0x7E) throw UsageError("HF_TOKEN has characters that no token has");
    curl_ = libcurl().init();
    if (!curl_) throw Error("libcurl cannot start");
}

HttpClient::~HttpClient() {
    libcurl().cleanup(static_cast<CURL*>(curl_));
}

Reply HttpClient::get(const std::string& url, uint64_t from, const Take& take) {
    CURL* curl = static_cast<CURL*>(curl_);
    libcurl().reset(curl);
    Transfer transfer{curl, url, take, on_silence};
    char message[CURL_ERROR_SIZE] = "";
    set(curl, CURLOPT_ERRORBUFFER, message);
    set(curl, CURLOPT_URL, url.c_str());
    set(curl, CURLOPT_USERAGENT, "aerie");
    set(curl, CURLOPT_NOSIGNAL, 1L);
    set_protocols(curl, url.starts_with("https:"));
    set(curl, CURLOPT_FOLLOWLOCATION, 1L);
    set(curl, CURLOPT_MAXREDIRS, kMostRedirections);
    set(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(curl, CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
    set(curl, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    set(curl, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
    set(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    set(curl, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
    set(curl, CURLOPT_NOPROGRESS, 0L);
    set(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
    set(curl, CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
    const std::string range = std::to_string(from) + "-";
    if (from > 0) set(curl, CURLOPT_RANGE, range.c_str());

    std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(nullptr, libcurl().free_list);
    if (!token_.empty())
        headers.reset(libcurl().append(nullptr, ("Authorization: Bearer " + token_).c_str()));
    set(curl, CURLOPT_HTTPHEADER, headers.get());

    const CURLcode code = libcurl().perform(curl);
    libcurl().info(curl, CURLINFO_RESPONSE_CODE, &transfer.reply.status);
    if (transfer.failure) std::rethrow_exception(transfer.failure);
    if (code == CURLE_OK) return std::move(transfer.reply);
    const std::string what = url + ": " + (*message ? message : libcurl().text_of(code));
    switch (code) {
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_TOO_MANY_REDIRECTS:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_WRITE_ERROR:
            throw Error(what);
        default:
            throw ConnectionLost(what);
    }
}

}  // namespace aerie::hub
