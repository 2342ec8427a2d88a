// A connection over a real socket. The test plays its server and its client.
#include "serve/sockets/connection.h"

#include <gtest/gtest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "host_memory.h"

namespace aerie {
namespace {

using boost::asio::ip::tcp;
using Code = boost::system::error_code;

class FakeOwner : public ConnectionOwner {
  public:
    const Endpoint& admit(const HttpHead& head) override {
        if (head.target == "/refused") throw Problem(404, "x", "x");
        static constexpr Endpoint kAny = {"/x", "POST", "/x"};
        return kAny;
    }
    void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
        if (request.target == "/throws") throw std::bad_alloc();
        if (request.target == "/short") exchange->reply({.body = "{}"});
        exchanges.push_back(std::move(exchange));
    }
    void refused(const Problem& problem) override { refusals.push_back(problem.status); }
    void failed() noexcept override { ++failures; }
    std::string fields_for(const HttpHead&) override { return ""; }
    bool is_draining() const override { return false; }
    bool has_place() const override { return true; }
    size_t hold(ptrdiff_t bytes) noexcept override { return held += size_t(bytes); }
    void closed(const std::shared_ptr<Connection>&) noexcept override { ++closings; }

    std::vector<std::shared_ptr<Exchange>> exchanges;
    std::vector<int> refusals;
    size_t held = 0;
    int failures = 0, closings = 0;
};

class CountingWaiter : public Waiter {
  public:
    void gone() override { ++goings; }
    void has_room() override { ++rooms; }
    int goings = 0, rooms = 0;
};

class ConnectionTest : public testing::Test {
  protected:
    ConnectionTest() { connect(); }
    ~ConnectionTest() override { connection->close(); }

    void connect() {
        tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
        client.open(tcp::v4());
        client.set_option(tcp::socket::receive_buffer_size(4096));
        client.connect(acceptor.local_endpoint());
        tcp::socket socket = acceptor.accept();
        socket.set_option(tcp::socket::send_buffer_size(4096));
        connection = std::make_shared<Connection>(io, std::move(socket), owner, 1, false);
        connection->start();
        client.non_blocking(true);
    }
    void reconnect() {
        connection->close();
        client.close();
        io.restart();  // it may have run out of work
        owner = {};
        all.clear();
        connect();
    }

    // Lets the connection work, for some time or until the condition holds.
    template <typename Holds>
    bool until(Holds holds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!holds()) {
            if (std::chrono::steady_clock::now() > end) return false;
            io.run_for(std::chrono::milliseconds(5));
        }
        return true;
    }
    void work(double seconds) { io.run_for(std::chrono::milliseconds(int(1000 * seconds))); }
    void send(const std::string& bytes) { boost::asio::write(client, boost::asio::buffer(bytes)); }
    // All bytes that have come, and those that come during this call.
    std::string received() {
        char bytes[4096];
        Code error;
        while (const size_t count = client.read_some(boost::asio::buffer(bytes), error)) {
            all.append(bytes, count);
            io.run_for(std::chrono::milliseconds(1));
        }
        is_closed = error == boost::asio::error::eof;
        return all;
    }
    bool until_received(const std::string& end) {
        return until([&] { return received().ends_with(end); });
    }

    boost::asio::io_context io;
    FakeOwner owner;
    tcp::socket client{io};
    std::shared_ptr<Connection> connection;
    std::string all;
    bool is_closed = false;
};

const std::string kPost = "POST /x HTTP/1.1\r\nContent-Length: 2\r\n";

TEST_F(ConnectionTest, SendsContinueBeforeTheReply) {
    const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
    send(kPost + "Expect: 100-continue\r\n\r\n");
    ASSERT_TRUE(until_received(interim));
    send("{}");
    ASSERT_TRUE(until([&] { return owner.exchanges.size() == 1; }));
    owner.exchanges[0]->reply({.body = "[]"});
    ASSERT_TRUE(until_received("[]"));
    EXPECT_TRUE(all.starts_with(interim + "HTTP/1.1 200 OK\r\n"));
    // Bytes that come late belong to no later reply.
    owner.exchanges[0]->say("late");
    send("GET /short HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(until_received("{}"));
    EXPECT_EQ(all.find("late"), all.npos);
}

TEST_F(ConnectionTest, WhatAHandlerThrowsClosesIt) {
    send("GET /throws HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    EXPECT_EQ(owner.failures, 1);
    received();
    EXPECT_TRUE(is_closed);
    EXPECT_EQ(all, "");
    connection->flush();
    EXPECT_EQ(owner.closings, 1);
}

TEST_F(ConnectionTest, TellsWhenASlowClientHasRoomAgain) {
    send("GET /x HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(until([&] { return owner.exchanges.size() == 1; }));
    Exchange& exchange = *owner.exchanges[0];
    const auto waiter = std::make_shared<CountingWaiter>();
    exchange.set_waiter(waiter);
    exchange.begin_stream();
    const int rooms = waiter->rooms;
    exchange.say(std::string(1 << 20, 'x'));
    work(0.2);
    EXPECT_GT(exchange.unsent(), size_t(kSendBuffer));
    EXPECT_EQ(waiter->rooms, rooms);
    ASSERT_TRUE(until([&] { return received().size() > (1 << 20); }));
    EXPECT_TRUE(until([&] { return waiter->rooms > rooms && exchange.unsent() == 0; }));
    exchange.end();
    EXPECT_TRUE(until_received("\r\n0\r\n\r\n"));
    EXPECT_FALSE(exchange.is_gone());
    EXPECT_EQ(waiter->goings, 0);
}

TEST_F(ConnectionTest, TellsThatItsClientHasGone) {
    send("GET /x HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(until([&] { return owner.exchanges.size() == 1; }));
    const auto waiter = std::make_shared<CountingWaiter>(),
               late = std::make_shared<CountingWaiter>();
    owner.exchanges[0]->set_waiter(waiter);
    EXPECT_FALSE(owner.exchanges[0]->is_gone());
    client.close();
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    EXPECT_TRUE(owner.exchanges[0]->is_gone());
    EXPECT_EQ(waiter->goings, 1);
    owner.exchanges[0]->set_waiter(late);
    EXPECT_EQ(late->goings, 1);
    owner.exchanges[0]->reply({.body = "{}"});
    EXPECT_EQ(owner.exchanges[0]->unsent(), 0u);
}

TEST_F(ConnectionTest, IsClosedWhereNoReplyCanBeMade) {
    send("GET /x HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(until([&] { return owner.exchanges.size() == 1; }));
    owner.exchanges[0]->begin_stream();
    owner.exchanges[0]->say("half");
    ASSERT_TRUE(until_received("half\r\n"));
    owner.exchanges[0]->abandon();
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    received();
    EXPECT_TRUE(is_closed);
    EXPECT_TRUE(all.ends_with("half\r\n"));
}

TEST_F(ConnectionTest, BytesBeforeTheReplyAreTheReplys) {
    send("GET /x HTTP/1.1\r\n\r\n");
    client.shutdown(tcp::socket::shutdown_send);
    ASSERT_TRUE(until_received("HT")) << "one, and half a second later another";
    owner.exchanges[0]->reply({.body = "{}"});
    ASSERT_TRUE(until_received("{}"));
    EXPECT_TRUE(all.starts_with("HTTP/1.1 200 OK\r\nContent-Type: "));
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    EXPECT_EQ(owner.exchanges[0]->unsent(), 0u);
}

TEST_F(ConnectionTest, TellsThatABodyEndedEarly) {
    const auto half = [](const std::string& field, const std::string& bytes) {
        return "POST /x HTTP/1.1\r\n" + field + "\r\n\r\n" + bytes;
    };
    for (const std::string& sent : {half("Content-Length: 2", "{"), half("Content-Length: 2", ""),
                                    "GET /short HTTP/1.1\r\n\r\n" + half("Content-Length: 9", "{}"),
                                    half("Transfer-Encoding: chunked", "2\r\n{}\r\n"),
                                    half("Transfer-Encoding: chunked", "2\r\n{")}) {
        reconnect();
        send(sent);
        client.shutdown(tcp::socket::shutdown_send);
        ASSERT_TRUE(until([&] { return owner.closings == 1; })) << sent;
        received();
        EXPECT_TRUE(is_closed);
        EXPECT_EQ(owner.refusals, std::vector<int>{400}) << sent;
        EXPECT_NE(all.find("HTTP/1.1 400 "), all.npos) << all;
        EXPECT_NE(all.find("\"code\":\"incomplete_body\""), all.npos) << all;
        EXPECT_EQ(owner.held, 0u);
    }
    // A head that ends early gets no reply.
    reconnect();
    send("POST /x HTTP/1.1\r\nContent-");
    client.shutdown(tcp::socket::shutdown_send);
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    EXPECT_EQ(received(), "");
}

TEST_F(ConnectionTest, BodiesAreCountedUntilTheyAreHandedOn) {
    const std::string start = "POST /x HTTP/1.1\r\nContent-Length: 1001\r\n\r\n";
    send(start + std::string(1000, ' '));
    ASSERT_TRUE(until([&] { return owner.held == 1000; }));
    send(" ");
    ASSERT_TRUE(until([&] { return owner.exchanges.size() == 1; }));
    EXPECT_EQ(owner.held, 0u);
    owner.exchanges[0]->reply({.body = "{}"});
    ASSERT_TRUE(until_received("{}"));
    send(start + std::string(500, ' '));
    ASSERT_TRUE(until([&] { return owner.held == 500; }));
    client.close();
    ASSERT_TRUE(until([&] { return owner.closings == 1; }));
    EXPECT_EQ(owner.held, 0u);
}

// The connection may notice at any time that the client has gone, even while a request begins.
TEST(ConnectionOfWhoGoes, IsClosedOnce) {
    const std::string sent = "GET /short HTTP/1.1\r\n\r\nGET /refused HTTP/1.1\r\n\r\n";
    for (int i = 0; i < 400; ++i) {
        boost::asio::io_context io;
        FakeOwner owner;
        tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
        tcp::socket client(io);
        client.connect(acceptor.local_endpoint());
        auto connection = std::make_shared<Connection>(io, acceptor.accept(), owner, 1, false);
        connection->start();
        for (int many = 0; many < 4; ++many) boost::asio::write(client, boost::asio::buffer(sent));
        client.shutdown(tcp::socket::shutdown_send);
        // At this point some replies are unread, or none is sent yet.
        for (int steps = 0; steps < i % 40; ++steps) io.poll_one();
        client.close();
        for (int waits = 0; waits < 400 && owner.closings == 0; ++waits)
            io.run_for(std::chrono::milliseconds(5));
        ASSERT_EQ(owner.closings, 1) << i;
        ASSERT_EQ(owner.failures, 0) << i;
        for (const auto& exchange : owner.exchanges) ASSERT_EQ(exchange->unsent(), 0u);
    }
}

// The requests of one client, one of which is refused. All bytes are there from the start.
struct Scene {
    boost::asio::io_context io;
    FakeOwner owner;
    tcp::socket client{io};
    std::shared_ptr<Connection> connection;
    const std::string sent =
        kPost + "Expect: 100-continue\r\n\r\n{}GET /short HTTP/1.1\r\n\r\n" +
        "GET /refused HTTP/1.1\r\n\r\nGET /short HTTP/1.1\r\nConnection: close\r\n\r\n";
    size_t received = 0;

    Scene() {
        tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
        client.connect(acceptor.local_endpoint());
        client.non_blocking(true);
        connection = std::make_shared<Connection>(io, acceptor.accept(), owner, 1, false);
        owner.exchanges.reserve(8);
    }

    // Runs until the connection is closed.
    void play() {
        connection->start();
        boost::asio::write(client, boost::asio::buffer(sent));
        bool is_answered = false;
        for (int i = 0; i < 5000 && owner.closings == 0; ++i) {
            io.run_for(std::chrono::milliseconds(1));
            if (!owner.exchanges.empty() && !std::exchange(is_answered, true)) {
                try {
                    owner.exchanges[0]->reply({.body = "[]"});
                } catch (const std::bad_alloc&) {
                    owner.exchanges[0]->abandon();
                }
            }
            char bytes[4096];
            Code error;
            received += client.read_some(boost::asio::buffer(bytes), error);
            if (error == boost::asio::error::eof) client.close();
        }
    }
};

TEST(ConnectionWithoutMemory, IsClosedAtMost) {
    size_t most = 0;
    Scene whole;
    whole.play();
    ASSERT_EQ(whole.owner.exchanges.size(), 3u);
    for (size_t n = 1; n < 10000; ++n) {
        Scene scene;
        test::fail_host(n);
        scene.play();
        const size_t requests = test::host_requests();
        test::fail_host(0);
        ASSERT_EQ(scene.owner.closings, 1) << n;
        ASSERT_TRUE(requests >= n || scene.received == whole.received) << n;
        ASSERT_EQ(scene.owner.held, 0u) << n;
        if (requests < n) break;
        most = n;
    }
    EXPECT_GT(most, 50u) << "it must have failed";
}

}  // namespace
}  // namespace aerie
