// Reads a request from the bytes that come, within limits. No sockets here.
#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <string>
#include <string_view>

#include "serve/requests/gate.h"

namespace aerie {

constexpr size_t kMaxHeadBytes = 16 << 10;

// A body in a string, like Boost's, but it allocates only for bytes that have come: Boost's reader
// allocates as much as the client announces.
struct GrownBody {
    using value_type = std::string;
    class reader {
      public:
        template <bool is_request, typename Fields>
        reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}
        void init(const boost::optional<uint64_t>&, boost::beast::error_code& error) { error = {}; }
        template <typename Buffers>
        size_t put(const Buffers& buffers, boost::beast::error_code& error) {
            error = {};
            size_t taken = 0;
            for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
                body_.append(static_cast<const char*>(buffer.data()), buffer.size());
                taken += buffer.size();
            }
            return taken;
        }
        void finish(boost::beast::error_code& error) { error = {}; }

      private:
        value_type& body_;
    };
};

class RequestReader {
  public:
    RequestReader();

    // Takes bytes of this request from the front of those that have come and were not taken yet: up
    // to the end of its head, or when that is known, of its body. Returns how many it took; the
    // others must come again, with more behind them. Throws Problem if this is not a valid request:
    // then nothing can follow it. Must not be called once the request is whole.
    size_t take(std::string_view bytes);

    bool has_begun() const { return has_begun_; }
    bool has_head() const { return parser_.is_header_done(); }
    bool is_whole() const { return parser_.is_done(); }
    // Whether the reply has no body. Known from the first bytes, even if those behind them are
    // wrong.
    bool is_head_request() const { return is_head_request_; }

    // Only once the request has a head:
    const HttpHead& head() const { return head_; }
    bool keeps_alive() const { return parser_.keep_alive(); }
    std::string& body() { return parser_.get().body(); }

  private:
    size_t take_head(std::string_view bytes);
    size_t take_body(std::string_view bytes);
    size_t put(std::string_view bytes);

    boost::beast::http::request_parser<GrownBody> parser_;
    HttpHead head_;
    size_t head_bytes_ = 0;  // bytes of the head so far
    bool has_begun_ = false, is_head_request_ = false;
};

}  // namespace aerie
