// A server before its model is loaded, over real sockets.
#include "serve/loading.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "serve/sockets/server.h"

namespace aerie {
namespace {

using boost::asio::ip::tcp;

// Replies to everything at once, as a service that is ready does to GET /health.
class Ready : public RequestHandler {
  public:
    void handle(HttpRequest, std::shared_ptr<Exchange> exchange) override {
        exchange->reply({.body = "ready"});
    }
    void count_refused(const Problem&) override {}
    void count_failed_connection() noexcept override {}
    void set_connections(int) override {}
    void drain() override {}
    void give_up_all() override {}
};

std::string reply_to(int port, const std::string& line, const std::string& body = "") {
    boost::asio::io_context io;
    tcp::socket socket(io);
    const auto to = (unsigned short)port;
    socket.connect({boost::asio::ip::address_v4::loopback(), to});
    std::string request =
        line + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\nConnection: close\r\n";
    if (!body.empty())
        request +=
            "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n";
    boost::asio::write(socket, boost::asio::buffer(request + "\r\n" + body));
    std::string reply;
    boost::system::error_code end;
    boost::asio::read(socket, boost::asio::dynamic_buffer(reply), end);
    return reply;
}

class LoadingTest : public testing::Test {
  protected:
    LoadingTest() : server(options()), thread([this] { server.run(loading); }) {}
    ~LoadingTest() override {
        server.stop();
        thread.join();
    }
    static ServerOptions options() {
        ServerOptions options;
        options.port = 0;
        options.log = [](const std::string&) {};
        return options;
    }
    std::string get(const std::string& path) { return reply_to(server.port(), "GET " + path); }

    Server server;
    Loading loading{"<html>", "default-src 'none'"};
    Ready ready;
    std::thread thread;
};

TEST_F(LoadingTest, ClientsHearHowFarItIs) {
    loading.set_stage("loading tiny: 3 of 9 MiB");
    const std::string health = get("/health");
    EXPECT_TRUE(health.starts_with("HTTP/1.1 503 ")) << health;
    EXPECT_NE(health.find("Retry-After: 1\r\n"), health.npos) << health;
    EXPECT_NE(health.find(R"({"status":"loading","stage":"loading tiny: 3 of 9 MiB"})"),
              health.npos)
        << health;
    for (const std::string& reply :
         {get("/v1/models"), reply_to(server.port(), "POST /v1/chat/completions", "{}")}) {
        EXPECT_TRUE(reply.starts_with("HTTP/1.1 503 ")) << reply;
        EXPECT_NE(reply.find("not ready yet: loading tiny: 3 of 9 MiB"), reply.npos) << reply;
        EXPECT_NE(reply.find(R"("code":"model_loading")"), reply.npos) << reply;
    }
    EXPECT_TRUE(get("/nothing").starts_with("HTTP/1.1 404 "));
    const std::string page = get("/");
    EXPECT_TRUE(page.starts_with("HTTP/1.1 200 ") && page.ends_with("<html>")) << page;
    EXPECT_NE(page.find("Content-Security-Policy: default-src 'none'"), page.npos) << page;
}

TEST_F(LoadingTest, TheServiceTakesOver) {
    EXPECT_TRUE(get("/health").starts_with("HTTP/1.1 503 "));
    server.hand_over(ready);
    EXPECT_TRUE(get("/health").ends_with("ready"));
}

TEST_F(LoadingTest, EndsWhereItIsStopped) {
    EXPECT_FALSE(server.is_ending());
    server.stop();
    for (int i = 0; i < 5000 && !server.is_ending(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(server.is_ending());
}

}  // namespace
}  // namespace aerie
