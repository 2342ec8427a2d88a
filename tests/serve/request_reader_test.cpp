// Requests are read from bytes, whatever pieces these come in.
#include "serve/sockets/request_reader.h"

#include <gtest/gtest.h>

namespace aerie {
namespace {

struct Read {
    std::vector<std::string> requests;  // target and body
    int status = 0;                     // the status of the refusal; 0: every request was valid
    std::string rest;                   // the bytes that were not taken
};

Read read(std::string_view bytes, size_t piece) {
    Read all;
    auto reader = std::make_unique<RequestReader>();
    while (!bytes.empty()) {
        all.rest += bytes.substr(0, piece);
        bytes.remove_prefix(std::min(piece, bytes.size()));
        for (size_t before = 0; before != all.rest.size() && !all.rest.empty();) {
            before = all.rest.size();
            try {
                all.rest.erase(0, reader->take(all.rest));
            } catch (const Problem& problem) {
                all.status = problem.status;
                return all;
            }
            if (!reader->has_head() || !reader->is_whole()) continue;
            all.requests.push_back(reader->head().target + " " + reader->body());
            reader = std::make_unique<RequestReader>();
        }
    }
    return all;
}

int status_of(const std::string& bytes) {
    const int whole = read(bytes, bytes.size()).status;
    EXPECT_EQ(read(bytes, 1).status, whole) << bytes;
    return whole;
}

const std::string kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(RequestReader, TakesOneAfterTheOther) {
    const std::string bytes = kGet + "POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n" +
                              "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                              "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n" + kGet + "GET";
    const std::vector<std::string> want = {"/a ", "/b hello", "/c abcde", "/a "};
    for (const size_t piece : {size_t(1), size_t(2), size_t(3), size_t(7), bytes.size()}) {
        const Read got = read(bytes, piece);
        EXPECT_EQ(got.requests, want) << piece;
        EXPECT_EQ(got.status, 0);
    }
}

TEST(RequestReader, LeavesOutEmptyLinesBefore) {
    EXPECT_EQ(read("\r\n\r\n" + kGet, 1).requests.size(), 1u);
    RequestReader reader;
    EXPECT_EQ(reader.take("\r"), 0u);
    EXPECT_EQ(reader.take("\r\n\r\n\r"), 4u);
    EXPECT_FALSE(reader.has_begun());
    EXPECT_EQ(status_of("\n" + kGet), 400);
    EXPECT_EQ(status_of("\rGET / HTTP/1.1\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesWhatOthersMayReadDifferently) {
    const auto with = [](const std::string& field) {
        return status_of("GET / HTTP/1.1\r\n" + field + "\r\n\r\n");
    };
    EXPECT_EQ(with("Host: h"), 0);
    for (const char* field :
         {"Host:\r\n h", "X: a\r\n b", "X: a\r\n\tb", "X: a\r\n ", " X: a", "X : a", "X: a\rb",
          "X: a\nY: b", ": a", "X", "Content-Length: x", "Content-Length: 5\r\nContent-Length: 6",
          "Content-Length: 5\r\nTransfer-Encoding: chunked"})
        EXPECT_EQ(with(field), 400) << field;
    EXPECT_EQ(with(std::string("X: a\0b", 6)), 400);
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
}

TEST(RequestReader, BoundsHeads) {
    std::string fields;
    while (fields.size() + 100 < kMaxHeadBytes) fields += "X: " + std::string(50, 'x') + "\r\n";
    const std::string start = "GET / HTTP/1.1\r\n";
    EXPECT_EQ(status_of(start + fields + "\r\n"), 0);
    fields += fields.substr(0, 110);
    EXPECT_EQ(read(start + fields + "\r\n", 1 << 20).status, 431);
    EXPECT_EQ(read(start + fields + "\r\n", 55).status, 431) << "a field at a time";
    EXPECT_EQ(status_of(start + "X: " + std::string(kMaxHeadBytes, 'x')), 431);
}

TEST(RequestReader, BoundsBodies) {
    const std::string start = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(read(start + "800000\r\n", 1 << 20).status, 0);
    EXPECT_EQ(read(start + "800001\r\n", 1 << 20).status, 413);
    EXPECT_EQ(read(start + "7fffff\r\n" + std::string(0x7fffff, 'x') + "\r\n2\r\n", 1 << 16).status,
              413);
    EXPECT_EQ(status_of(start + "1;" + std::string(kMaxHeadBytes + 1, 'x')), 431);
    EXPECT_EQ(status_of(start + "10000000000000000\r\n"), 400);
    for (const char* size : {"x", "-1", "0x1", "+1", ""})
        EXPECT_EQ(status_of(start + size + "\r\n\r\n"), 400) << size;
}

TEST(RequestReader, TakesMemoryForWhatHasCome) {
    RequestReader reader;
    reader.take("POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n");
    reader.take(std::string(1000, 'x'));
    EXPECT_EQ(reader.body().size(), 1000u);
    EXPECT_LT(reader.body().capacity(), 4000u);
}

TEST(RequestReader, KnowsHeadRequestsEarly) {
    for (const char* bytes :
         {"HEAD / HTTP/1.7\r\n\r\n", "HEAD /\x01", "HEAD / HTTP/1.1\r\n: x\r\n\r\n"}) {
        RequestReader reader;
        EXPECT_THROW(reader.take(bytes), Problem);
        EXPECT_TRUE(reader.is_head_request()) << bytes;
    }
    RequestReader reader;
    reader.take("HEADER / HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(reader.is_head_request());
}

}  // namespace
}  // namespace aerie
