// Requests of the page to the server that it came from.

class ServerError extends Error {
  constructor(status, error) {
    super(error?.message ?? "the server replied with status " + status);
    this.status = status;
    this.code = error?.code;
  }
}

async function request(path, body, signal) {
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  if (settings.key) headers.Authorization = "Bearer " + settings.key;
  const options = { method: body ? "POST" : "GET", headers, signal };
  if (body) options.body = JSON.stringify(body);
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    throw lost(error, "the server cannot be reached");
  }
  if (reply.ok) return reply;
  throw new ServerError(reply.status, (await reply.json().catch(() => null))?.error);
}

// Browsers have words of their own for a connection that fails. The state of the server is looked at anew then.
function lost(error, words) {
  if (error.name === "AbortError") return error;
  watch.soon();
  return new Error(words);
}

const ask = async (path, body, signal) => (await request(path, body, signal)).json();

// Lets the browser handle events that wait.
const breathe = () =>
  new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      done();
    };
    channel.port2.postMessage(null);
  });

const kSlice = 8;  // milliseconds of work at a time

// Calls onPart with each part of a streamed reply, and onRead with the tokens of the prompt that are
// read and all of them.
async function stream(path, body, signal, onPart, onRead) {
  const reply = await request(path, { ...body, stream: true, stream_options: { include_usage: true } }, signal);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", since = performance.now();
  while (true) {
    const { value, done } = await reader.read().catch((error) => {
      throw lost(error, "the connection to the server broke before the answer was whole");
    });
    if (done) throw lost({}, "the server ended the answer before it was whole");
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (event === "data: [DONE]") return;
      if (event.startsWith(":")) {
        const [read, all] = event.match(/\d+/g) ?? [];
        if (all) onRead?.(Number(read), Number(all));
        continue;
      }
      const part = JSON.parse(event.slice(6));
      if (part.error) throw new ServerError(500, part.error);
      onPart(part);
      if (performance.now() - since < kSlice) continue;
      await breathe();
      since = performance.now();
    }
  }
}

const roughly = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const grouped = (value) => value.toLocaleString("en-US").replaceAll(",", "\u202f");
const sentence = (words) => words[0].toUpperCase() + words.slice(1) + ".";
const plural = (count, word) => grouped(count) + " " + word + (count === 1 ? "" : "s");
const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];
// A name that nobody else has. Pages by plain HTTP have no crypto.randomUUID.
const randomName = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("");
const message = (error) => error.message.charAt(0).toUpperCase() + error.message.slice(1);
